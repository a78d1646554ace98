#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Programs that train under a plan: the same lines as alone, the peak as predicted, whatever happens on the way."""
import contextlib
import json
import os
import sqlite3
import subprocess
import time
from pathlib import Path

import nightly
from sessions import InFolder, once
from torch2 import TORCH2, needs_torch2

HIGHWATER = os.path.join(os.environ.get("HIGHWATER_BIN", "build/release/bin"), "highwater")

BEGIN = """
    import gc
    gc.disable()  # a third of what the import below and the program's end take
    import hashlib, torch
    from torch import nn
    gc.freeze(), gc.enable()
    torch.manual_seed(3)
    torch.set_num_threads(1)  # others share the machine: threads that wait for each other take many times as long
    def digest(modules, optimizers):
        h = hashlib.sha256()
        for module in modules:
            for name, value in module.state_dict().items():
                h.update(name.encode() + value.detach().contiguous().numpy().tobytes())
            for name, value in module.named_parameters():
                h.update(value.grad.numpy().tobytes() if value.grad is not None else b"none")
        for optimizer in optimizers:
            for state in optimizer.state.values():
                for value in state.values():
                    if isinstance(value, torch.Tensor): h.update(value.numpy().tobytes())
        h.update(torch.get_rng_state().numpy().tobytes())
        print("digest", h.hexdigest())
    """

# Dropout, layer norms, in-place activations, views, a residual, states that the first step makes.
DEEP = BEGIN + """
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.a, self.b = nn.LayerNorm(96), nn.Linear(96, 384), nn.Linear(384, 96)
            self.drop, self.act = nn.Dropout(0.1), nn.ReLU(inplace=True)
        def forward(self, x):
            h = self.drop(self.b(self.act(self.a(self.norm(x)))))
            h += x
            return h.view(-1, 8, 12).transpose(1, 2).reshape(x.shape)
    model = nn.Sequential(*[Block() for _ in range(8)], nn.Linear(96, 8))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(8):
        n = 64 if step == 6 else 256
        optimizer.zero_grad()
        loss = model(torch.randn(n, 96)).square().mean()
        loss.backward()
        optimizer.step()
        print("step", step, loss.item().hex())
        if step == 4:
            with torch.no_grad(): print("eval", model(torch.randn(32, 96)).sum().item().hex())
    digest([model], [optimizer])
    """

# Batch norm, whose statistics must move once a step, and a step that fails half-way.
CONVOLUTIONS = BEGIN + """
    def unit(a, b): return [nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU(inplace=True)]
    model = nn.Sequential(*unit(3, 16), *[m for _ in range(5) for m in unit(16, 16)], nn.AdaptiveAvgPool2d(1),
                          nn.Flatten(), nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for step in range(7):
        try:
            optimizer.zero_grad()
            out = model(torch.randn(8, 3, 24, 24))
            if step == 4: raise KeyError("half-way")
            loss = nn.functional.cross_entropy(out, torch.randint(0, 4, (8,)))
            loss.backward()
            optimizer.step()
            print("step", step, loss.item().hex())
        except KeyError as error:
            print("given up", error)
    digest([model], [optimizer])
    """

# Batch norms that read their statistics, as where a trained network is trained further.
FROZEN = CONVOLUTIONS.replace("    optimizer =", """    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d): m.eval(); m.running_mean.normal_(); m.running_var.uniform_(0.5, 2)
    optimizer =""")

# Runs a CUDA graph in a step; without a GPU it does not come far.
GRAPHS = DEEP.replace("        loss.backward()", """        if step == 5:
            try: torch.cuda.CUDAGraph.replay(object())
            except Exception: print("no graph")
        loss.backward()""")

# ReLUs before dropout, whose signs are all that the backward pass needs, and dropout's masks.
MASKED = BEGIN + """
    model = nn.Sequential(*[m for _ in range(6) for m in (nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.2))], nn.Linear(64, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(6):
        optimizer.zero_grad()
        loss = model(torch.randn(512, 64)).square().mean()
        loss.backward()
        optimizer.step()
        print("step", step, loss.item().hex())
    digest([model], [optimizer])
    """

# The loss is read before the optimizer's step, and is gone then.
LOGGED = BEGIN + """
    model = nn.Sequential(*[m for _ in range(10) for m in (nn.Linear(128, 128), nn.GELU())], nn.Linear(128, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(6):
        optimizer.zero_grad()
        out = model(torch.randn(256, 128))
        loss = nn.functional.cross_entropy(out, torch.randint(0, 10, (256,)))
        loss.backward()
        value = loss.item()
        del out, loss
        optimizer.step()
        print("step", step, value.hex())
    digest([model], [optimizer])
    """

# A thread of its own takes figures of what a step makes, while the step goes on, and one scales what the backward pass
# is about to read.
THREADS = BEGIN + """
    import threading
    from concurrent.futures import ThreadPoolExecutor
    pool = ThreadPoolExecutor(1)
    layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(12))
    optimizer = torch.optim.AdamW(layers.parameters(), lr=1e-3)
    for step in range(8):
        optimizer.zero_grad()
        x, kept = torch.randn(2048, 64), []
        for layer in layers:
            x = torch.tanh(layer(x))
            kept.append(x)
        loss = x.square().mean()
        sums = [pool.submit(lambda t: t.detach().double().sum(), t) for t in kept[:4]]
        loss.backward()
        sums = [each.result().item().hex() for each in sums]
        if step == 5:
            other = threading.Thread(target=lambda: kept[1].detach().mul_(2))
            other.start()
            other.join()
            sums.append(kept[1].sum().item().hex())
        optimizer.step()
        print("step", step, loss.item().hex(), sums)
        del x, loss, kept
    digest(layers, [optimizer])
    """

# Looks at its activations past the dispatcher.
WATCHED = BEGIN + """
    import ctypes
    model = nn.Sequential(*[m for _ in range(5) for m in (nn.Linear(128, 128), nn.Tanh())])
    kept = []
    for m in model: m.register_forward_hook(lambda _m, _i, out: kept.append(out))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(6):
        del kept[:]
        loss = model(torch.randn(512, 128)).square().mean()
        seen = [float(t.detach().numpy().sum()).hex() for t in kept]
        seen.append(ctypes.c_float.from_address(kept[3].data_ptr()).value)
        seen.append(sum(kept[2].detach()[0].tolist()))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("step", step, loss.item().hex(), seen)
    digest([model], [optimizer])
    """


# Its lists of integers are read by what no op shows: autograd's formula for packed sequences, CTC's loss, tensor_split.
LISTS = BEGIN + """
    embed, lstm, out = torch.nn.Embedding(50, 32), torch.nn.LSTM(32, 48, batch_first=True), torch.nn.Linear(48, 20)
    optimizer = torch.optim.SGD([*embed.parameters(), *lstm.parameters(), *out.parameters()], lr=1e-2)
    for step in range(6):
        lengths = torch.tensor([20, 18, 12, 12, 9, 7, 5, 5])
        packed = torch.nn.utils.rnn.pack_padded_sequence(embed(torch.randint(0, 50, (8, 20))), lengths + 0, batch_first=True)
        told, counts = torch.nn.utils.rnn.pad_packed_sequence(lstm(packed)[0], batch_first=True)
        chances = out(told.tanh() * 2).log_softmax(2).transpose(0, 1)
        first, second = torch.tensor_split(chances, torch.full((1,), 3) + 1)
        loss = torch.nn.functional.ctc_loss(chances.sin(), torch.randint(1, 20, (8, 3)), counts * 1, torch.full((8,), 1) + 2)
        optimizer.zero_grad()
        (loss + first.exp().mean() - second.exp().mean()).backward()
        optimizer.step()
        print("step", step, loss.item().hex())
"""

# Reads the bytes of what it is given itself: by the address in the storage, which asks nobody.
EXTENSION = """
    #include <torch/extension.h>
    double total(const at::Tensor& tensor) {
        const auto* bytes = static_cast<const float*>(
            tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl()->data());
        double sum = 0;
        for (int64_t i = 0; i < tensor.numel(); ++i) sum += bytes[tensor.storage_offset() + i];
        return sum;
    }
    double totals(const std::vector<at::Tensor>& tensors) {
        double sum = 0;
        for (const at::Tensor& tensor : tensors) sum += total(tensor);
        return sum;
    }
    PYBIND11_MODULE(peek, module) {
        module.def("total", &total);
        module.def("totals", &totals);
    }
    """

# Imports an extension when it trains under the plan already.
EXTENDED = BEGIN + """
    model = nn.Sequential(*[m for _ in range(6) for m in (nn.Linear(256, 256), nn.Tanh(), nn.LayerNorm(256))])
    kept = []
    for m in model: m.register_forward_hook(lambda _m, _i, out: kept.append(out))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(8):
        loss = model(torch.randn(2048, 256)).square().mean()
        seen = []
        if step >= 4:
            import peek
            seen = [peek.total(kept[4]), peek.totals(kept[:3])]
        optimizer.zero_grad()
        loss.backward()
        if step >= 5: seen += [peek.total(t) for t in kept[::3]]
        del kept[:]
        optimizer.step()
        print("step", step, loss.item().hex(), [value.hex() for value in seen])
    digest([model], [optimizer])
    """


# The scale of a quantized tensor is not in its bytes.
QUANTIZED = """
    import torch
    from torch import nn
    torch.manual_seed(2)
    model = nn.Sequential(*(nn.Linear(64, 64) for _ in range(6)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(6):
        x = torch.randn(512, 64)
        loss = 0.0
        for layer in model:
            x = layer(x)
            near = torch.quantize_per_tensor(x.detach(), 0.05, 0, torch.qint8).dequantize()
            loss = loss + (x * near).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("step", step, loss.item().hex())
"""

# Types of elements that came with torch 2.
NARROW = QUANTIZED.replace("torch.quantize_per_tensor(x.detach(), 0.05, 0, torch.qint8).dequantize()",
                           "x.detach().to(torch.float8_e4m3fn).float() + x.detach().abs().to(torch.uint16).float()")


class Train(InFolder):
    python = "/usr/bin/python3"
    ratio = 0.75  # of the budget; where more of the peak is parameters and their states, less can go

    def run_it(self, *command):
        return subprocess.run(command, capture_output=True, text=True, timeout=600,
                              env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})

    def planned(self, program, ratio=None, planner="highwater", even=False):
        """The script, what it prints alone, its session and a plan; of the same program once for all tests.

        even: every op takes as long, so that the plan does not depend on the machine."""
        script = self.script(program)
        plan = os.path.join(self.folder, "p.plan.json")
        files = Path(self.session), Path(plan)

        def make():
            return *self.recorded_and_planned(script, plan, ratio, planner, even), [file.read_bytes() for file in files]
        plain, made, contents = once((self.python, program, ratio, planner, even), make)
        for file, bytes_ in zip(files, contents, strict=True):
            file.write_bytes(bytes_)
        return script, plain, plan, json.loads(made)

    def recorded_and_planned(self, script, plan, ratio, planner, even):
        plain = self.run_it(self.python, script)
        self.assertEqual(plain.returncode, 0, plain.stderr)
        recorded = self.run_it(HIGHWATER, "record", "-o", self.session, "--", self.python, script)
        self.assertEqual(recorded.returncode, 0, recorded.stderr)
        if even:
            with contextlib.closing(sqlite3.connect(self.session)) as database, database:
                database.execute("UPDATE ops SET duration_ns = 100000")
        made = self.run_it(HIGHWATER, "plan", self.session, "--planner", planner, "--ratio", str(ratio or self.ratio), "-o", plan,
                           "--time-limit", "1", "--json")
        self.assertEqual(made.returncode, 0, made.stderr)
        return plain.stdout, made.stdout

    def train(self, script, plan, *options):
        report = os.path.join(self.folder, "report.json")
        done = self.run_it(HIGHWATER, "train", *([self.session, plan] if plan else []), *options, "--report", report,
                           "--", self.python, script)
        with open(report) as file:
            return done, json.load(file)

    def check(self, program, fewest, planner="highwater", ratio=None):
        # What a heuristic finds follows from the times; of those of a busy machine it may find nothing.
        script, plain, plan, predicted = self.planned(program, ratio, planner, even=planner.startswith("dtr:"))
        done, report = self.train(script, plan)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, plain, done.stderr)
        self.assertGreaterEqual(report["steps_planned"], fewest, done.stderr)
        self.assertGreater(report["recomputed_ops"], 0)
        return predicted, report

    def test_the_same_lines_and_the_predicted_peak(self):
        predicted, report = self.check(DEEP, fewest=7)  # all but the one with a smaller batch
        self.assertLess(abs(report["measured_peak_bytes"] - predicted["peak_bytes"]),
                        max(65536, predicted["peak_bytes"] // 1000))
        # The session keeps what came out beside what was predicted.
        self.assertEqual(self.query("SELECT device, plans.peak_bytes, predicted_peak_bytes, measured_peak_bytes FROM runs"
                                    " JOIN plans ON plans.id = plan"),
                         [("training", predicted["peak_bytes"], predicted["peak_bytes"], report["measured_peak_bytes"])])

    def test_modules_are_watched_without_new_methods_in_each_step(self):
        """Each makes Python forget what it knew of all their classes."""
        _, report = self.check(DEEP.replace('        print("step"', """        if step > 2: ways.append(vars(nn.Module)["__call__"])
        print("step\"""").replace("    digest([model]", """    print("ways", len(set(map(id, ways))))
    digest([model]""").replace("    for step in", "    ways = []\n    for step in"), fewest=7)
        self.assertEqual(report["steps"], 8)

    def test_a_loss_is_read_where_the_program_reads_it(self):
        predicted, report = self.check(LOGGED, fewest=6)
        self.assertLess(abs(report["measured_peak_bytes"] - predicted["peak_bytes"]), 65536)

    @nightly.nightly
    def test_an_eviction_runtimes_plan(self):
        self.check(DEEP, fewest=4, planner="dtr:eqclass", ratio=0.85)

    def test_an_encoding_takes_the_place_of_bytes(self):
        script, plain, plan, predicted = self.planned(MASKED, ratio=0.8, planner="echo", even=True)
        with open(plan) as file:
            codecs = {action[2] for action in json.load(file)["schedule"] if action[0] == "e"}
        self.assertEqual(codecs, {"sign1", "mask1"})
        done, report = self.train(script, plan)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, plain, done.stderr)
        self.assertEqual(report["steps_planned"], 6, done.stderr)
        self.assertLessEqual(report["measured_peak_bytes"], report["budget_bytes"])  # the first step has a plan of its own
        self.assertLessEqual(report["step_peaks_bytes"][-1], predicted["peak_bytes"] * 1.001)

    def test_other_threads_get_the_bytes(self):
        script, plain, plan, _ = self.planned(THREADS, ratio=0.95)
        done, report = self.train(script, plan)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, plain)
        self.assertGreater(report["steps_planned"], 0)

    def test_steps_are_told_as_they_end(self):
        script, plain, plan, predicted = self.planned(DEEP)
        told = os.path.join(self.folder, "progress")
        done, report = self.train(script, plan, "--progress", told)
        self.assertEqual(done.stdout, plain)
        with open(told) as file:
            events = [json.loads(line) for line in file]
        self.assertEqual([event["event"] for event in events], ["step"] * 8 + ["ended"])
        self.assertEqual(events[-1]["report"], report)
        steps = events[:-1]
        self.assertEqual([step["peak_bytes"] for step in steps], report["step_peaks_bytes"])
        self.assertEqual(sum(step["mode"] == "plan" for step in steps), report["steps_planned"])
        self.assertTrue(steps[6]["divergence"]["found"], steps[6])
        curves = [step for step in steps if "curve" in step]
        self.assertTrue(curves)
        ops = self.query("SELECT COUNT(*) FROM ops JOIN steps ON seq >= first_seq AND seq < end_seq GROUP BY steps.id")
        for step in curves:
            self.assertEqual(max(step["curve"]), step["peak_bytes"])
            self.assertIn((len(step["curve"]),), ops)

    def test_a_released_program_goes_on(self):
        reached, go = (os.path.join(self.folder, name) for name in ("reached", "go"))
        script, plain, plan, _ = self.planned(MASKED.replace("loss.backward()", f"""loss.backward()
        if step == 3 and os.environ.get("WAITS"):
            open({reached!r}, "w")
            while not os.path.exists({go!r}): time.sleep(0.01)""").replace("import hashlib", "import hashlib, os, time"),
                                              ratio=0.8, planner="echo")
        report = os.path.join(self.folder, "r.json")
        running = subprocess.Popen([HIGHWATER, "train", self.session, plan, "--report", report, "--", self.python, script],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, "WAITS": "1"})
        pid = next(line.split()[-1] for line in running.stderr if " process " in line)
        while not os.path.exists(reached):
            self.assertIsNone(running.poll())
            time.sleep(0.01)
        release = subprocess.Popen([HIGHWATER, "release", pid], stderr=subprocess.PIPE, text=True)
        time.sleep(0.5)  # the step that it arrives in ends under the plan
        open(go, "w").close()
        self.assertEqual(release.wait(timeout=60), 0, release.communicate()[1])
        out, err = running.communicate(timeout=300)
        self.assertEqual(running.returncode, 0, err)
        self.assertEqual(out, plain)
        self.assertIn("it goes on", err)
        with open(report) as file:
            told = json.load(file)
        self.assertIsNone(told["exit_status"])
        self.assertEqual(told["steps"], 4, err)  # the one that it came in has ended under the plan

    def test_statistics_move_once_and_a_step_may_fail(self):
        predicted, report = self.check(CONVOLUTIONS, fewest=3)
        self.assertLess(abs(report["measured_peak_bytes"] - predicted["peak_bytes"]),
                        max(65536, predicted["peak_bytes"] // 1000))

    def test_statistics_that_stay_are_read_again(self):
        _, report = self.check(FROZEN, fewest=3)
        # The only unplanned step has left the plan: the others are compared with what is left of them without it.
        self.assertEqual((report["modes"]["none"], report["steps_diverged"]), (1, 1))
        self.assertGreater(report["measured_overhead"], 1)

    def test_what_comes_before_a_graph_is_restored(self):
        _, report = self.check(GRAPHS, fewest=6)
        self.assertIn("a CUDA graph runs", [each["found"] for each in report["divergences"]])

    def test_who_looks_past_the_dispatcher_gets_the_bytes(self):
        script, plain, plan, _ = self.planned(WATCHED, ratio=0.95)
        done, report = self.train(script, plan)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, plain)

    def test_lists_that_no_op_is_seen_to_read_stay(self):
        self.check(LISTS, fewest=4, planner="dtr:eqclass", ratio=0.85)

    @nightly.nightly
    def test_what_reads_quantized_tensors_is_not_run_again(self):
        predicted, report = self.check(QUANTIZED, fewest=5, planner="dtr:eqclass", ratio=0.9)
        self.assertLess(abs(report["measured_peak_bytes"] - predicted["peak_bytes"]), predicted["peak_bytes"] // 1000)

    def test_what_few_programs_do_keeps_to_its_plan(self):
        """Ops that raise, sparse and quantized tensors, storages that grow or come from a file."""
        with open(os.path.join(os.path.dirname(__file__), "..", "training", "unusual.py")) as file:
            program = file.read().replace("default=8", "default=4096").replace("default=3", "default=4")
        predicted, report = self.check(program, fewest=3, ratio=0.87)
        self.assertLess(abs(report["measured_peak_bytes"] - predicted["peak_bytes"]), predicted["peak_bytes"] // 1000)

    def test_a_cap_ends_the_program_and_a_plan_fits_under_it(self):
        script, plain, plan, predicted = self.planned(DEEP)
        cap = str(int(predicted["peak_bytes"] * 1.05))
        alone, _ = self.train(script, None, "--cap", cap)
        self.assertNotEqual(alone.returncode, 0)
        self.assertIn("allocate", alone.stderr)
        under, _ = self.train(script, plan, "--from-start", "--cap", cap)
        self.assertEqual(under.returncode, 0, under.stderr)
        self.assertEqual(under.stdout, plain)

    def test_the_first_step_has_a_plan_that_is_made_while_the_program_starts(self):
        """It makes the optimizer's states, and is of a kind of its own."""
        script, plain, plan, _ = self.planned(DEEP)
        done, report = self.train(script, plan)
        self.assertEqual((done.returncode, done.stdout), (0, plain), done.stderr)
        self.assertEqual((report["steps_planned"], [each["step"] for each in report["divergences"]]), (7, [6]), done.stderr)
        self.assertLess(done.stderr.index("started"), done.stderr.index("under the plan"))

    def test_a_program_that_ends_before_its_plans_are_there(self):
        _, _, plan, _ = self.planned(DEEP)
        done = self.run_it(HIGHWATER, "train", self.session, plan, "--", self.python, "-c", "raise SystemExit(7)")
        self.assertEqual(done.returncode, 7, done.stderr)

    def test_another_programs_plan_leaves_it_alone(self):
        _, _, plan, _ = self.planned(DEEP)
        other = self.script(CONVOLUTIONS)
        plain = self.run_it(self.python, other).stdout
        done, report = self.train(other, plan)
        self.assertEqual(done.stdout, plain)
        self.assertEqual(report["steps_planned"], 0)
        self.assertGreater(report["steps"], 0)

    def test_a_plan_that_no_running_program_can_be_given_is_refused(self):
        script, _, plan, _ = self.planned(DEEP)
        with open(plan) as file:
            text = json.load(file)
        text["graph"]["fingerprint"] = "sha256:" + "0" * 64
        with open(plan, "w") as file:
            json.dump(text, file)
        done = self.run_it(HIGHWATER, "train", self.session, plan, "--", self.python, script)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertNotIn("step", done.stdout)

    def test_the_programs_own_status(self):
        script = self.script("raise SystemExit(7)")
        self.assertEqual(self.run_it(HIGHWATER, "train", "--", self.python, script).returncode, 7)


@needs_torch2
@nightly.repeats("test_an_extension_that_reads_memory_gets_the_bytes", "test_other_threads_get_the_bytes",
                 "test_a_loss_is_read_where_the_program_reads_it", "test_an_encoding_takes_the_place_of_bytes",
                 "test_another_programs_plan_leaves_it_alone", "test_what_comes_before_a_graph_is_restored",
                 "test_a_released_program_goes_on", "test_lists_that_no_op_is_seen_to_read_stay",
                 "test_statistics_that_stay_are_read_again")
class TrainTorch2(Train):
    python = TORCH2
    ratio = 0.85
    # The framework has no part in these.
    test_a_plan_that_no_running_program_can_be_given_is_refused = test_the_programs_own_status = None
    test_steps_are_told_as_they_end = None
    test_what_few_programs_do_keeps_to_its_plan = None  # newer frameworks know less of it

    def test_types_of_elements_that_came_later(self):
        self.check(NARROW, fewest=5)

    def test_an_extension_that_reads_memory_gets_the_bytes(self):
        packages = os.path.join(os.path.dirname(os.path.realpath(TORCH2)), "packages/torch")
        source = os.path.join(self.folder, "peek.cpp")
        with open(source, "w") as file:
            file.write(EXTENSION)
        include = subprocess.check_output([self.python, "-c", "import sysconfig; print(sysconfig.get_path('include'))"],
                                          text=True).strip()
        built = self.run_it("c++", "-shared", "-fPIC", "-std=c++17", "-w", source, "-DTORCH_EXTENSION_NAME=peek",
                            *("-I" + folder for folder in (packages + "/include", include,
                                                           packages + "/include/torch/csrc/api/include")),
                            "-L" + packages + "/lib", "-ltorch_python", "-ltorch_cpu", "-lc10",
                            "-o", os.path.join(self.folder, "peek.so"))
        self.assertEqual(built.returncode, 0, built.stderr)
        script, plain, plan, _ = self.planned(EXTENDED, ratio=0.75)
        done, report = self.train(script, plan)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, plain)
        self.assertEqual(report["steps_planned"], 8)
        self.assertGreater(report["pinned_bytes"], 0)


if __name__ == "__main__":
    nightly.main()
