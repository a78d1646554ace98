#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Records real training scripts with the built executable and looks into the sessions."""
import csv
import json
import os
import signal
import stat
import subprocess
import sys

import nightly
from sessions import InFolder
from torch2 import TORCH2, needs_torch2

HIGHWATER = os.path.join(os.environ.get("HIGHWATER_BIN", "build/release/bin"), "highwater")
TRAINING = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "training")
PYTHON = "/usr/bin/python3"

MLP = """
import sys, torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(10, 20), torch.nn.ReLU(), torch.nn.Linear(20, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(int(sys.argv[1]) if len(sys.argv) > 1 else 3):
    optimizer.zero_grad()
    loss = model(torch.randn(4, 10)).pow(2).mean()
    loss.backward()
    optimizer.step()
    print(step, loss.item().hex(), flush=True)
"""


class Recording(InFolder):
    def record(self, *command, options=(), session=None, environment=None):
        return subprocess.run(
            [HIGHWATER, "record", "--json", "-o", session or self.session, *options, "--",
             *command], capture_output=True, text=True, timeout=300, env=environment)

    def recorded(self, *command, options=(), environment=None):
        done = self.record(*command, options=options, environment=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout), done.stderr

    def info(self):
        done = subprocess.run([HIGHWATER, "info", "--json", self.session], capture_output=True,
                              text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def fails(self, done, *words):
        self.assertEqual(done.returncode, 5, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertFalse(os.path.exists(self.session))


class Models(Recording):
    python = PYTHON
    gradients = 1  # made for every parameter in the two recorded steps

    def record_as_unwatched(self, name, *arguments, options):
        command = (self.python, os.path.join(TRAINING, name + ".py"), "--steps", "4", *arguments)
        plain = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
        done, output = self.recorded(*command, options=options)
        losses = [line for line in plain.stdout.splitlines() if line]
        self.assertEqual(len(losses), 4)
        for line in losses:  # bit-identical: losses are printed as hexadecimal floats
            self.assertIn(line, output)
        return done, output

    def check(self, name, *arguments):
        done, _ = self.record_as_unwatched(name, *arguments, options=("--steps", "2", "--warmup", "1"))
        self.assertEqual((done["steps"], done["dropped"]), (2, 0))

        info = self.info()
        self.assertEqual(info["ops"], done["ops"])
        (peak,), = self.query("SELECT allocator_peak_bytes FROM steps ORDER BY id DESC LIMIT 1")
        self.assertLessEqual(abs(info["baseline"]["peak_bytes"] - peak), peak / 1000)
        (begin,), = self.query("SELECT allocator_begin_bytes FROM steps ORDER BY id DESC LIMIT 1")
        self.assertLessEqual(abs(info["baseline"]["constant_bytes"] - begin), begin / 1000)
        self.assertEqual(sum(info["categories"].values()), info["baseline"]["peak_bytes"])
        self.assert_live_bytes()
        self.assert_consistent()

    def assert_live_bytes(self):
        """Before every op, what the session says is alive is what the allocator says, within 4 KB."""
        changes = []
        for begin, end, size in self.query("SELECT alloc_seq, free_seq, bytes FROM storages"):
            changes.append((begin, size))
            if end is not None:
                changes.append((end, -size))
        changes.sort()
        alive, at, ops = 0, 0, self.query("SELECT seq, live_bytes FROM ops ORDER BY seq")
        self.assertGreater(len(ops), 1000)
        for seq, live in ops:
            while at < len(changes) and changes[at][0] < seq:
                alive += changes[at][1]
                at += 1
            self.assertLessEqual(abs(alive - live), 4096, seq)

    def assert_consistent(self):
        self.assertEqual(self.query("SELECT name FROM ops WHERE layer IS NULL"), [])
        self.assertEqual(self.query("SELECT * FROM gaps"), [])
        phases = dict(self.query("SELECT phase, COUNT(*) FROM ops GROUP BY phase"))
        self.assertEqual(set(phases), {"forward", "backward", "optimizer"})
        # A backward op outside of every module belongs to the loss, and there are few of these.
        (outside,), = self.query(
            "SELECT COUNT(*) FROM ops JOIN layers ON layers.id = ops.layer"
            " WHERE phase = 'backward' AND path LIKE '(loss)'")
        self.assertLess(outside, phases["backward"] / 10)
        self.assertEqual(self.query("SELECT id FROM ops WHERE args LIKE '%opaque%'"), [])
        for (text,) in self.query("SELECT args FROM ops"):
            json.loads(text)
        # Reads and writes of every storage agree about its version.
        versions = {}
        for op, in self.query("SELECT id FROM ops ORDER BY seq"):
            for storage, version in self.query(
                    "SELECT storage, version FROM op_inputs JOIN tensors ON id = tensor"
                    " WHERE op = %d" % op):
                self.assertEqual(versions.setdefault(storage, version), version)
            for storage, before in self.query(
                    "SELECT storage, version_before FROM op_writes WHERE op = %d" % op):
                self.assertEqual(versions.setdefault(storage, before), before)
                versions[storage] = before + 1

    def test_resnet(self):
        self.check("resnet", "--depth", "50", "--batch", "2", "--size", "16")
        layers = dict(self.query("SELECT path, type FROM layers"))
        self.assertEqual(layers["layer1.0.conv3"], "Conv2d")
        self.assertEqual(layers["(root)"], "ResNet")
        categories = dict(self.query("SELECT category, SUM(bytes) FROM storages GROUP BY 1"))
        for name in ("input", "activation"):
            self.assertGreater(categories[name], 0)
        # Besides those of the parameters, the loss's own (4 bytes a step).
        self.assertEqual(categories["gradient"], self.gradients * 4 * 23520842 + 2 * 4)

    @nightly.nightly
    def test_gpt(self):
        self.check("gpt", "--batch", "2", "--length", "32")

    @nightly.nightly
    def test_transformer(self):
        self.check("transformer", "--batch", "4", "--length", "32")
        categories = dict(self.query("SELECT category, SUM(bytes) FROM storages GROUP BY 1"))
        moments = categories["optimizer state"] * self.gradients
        self.assertGreaterEqual(moments, 2 * (categories["gradient"] - 2 * 4))
        random = {name for name, in self.query("SELECT name FROM ops WHERE random")}
        self.assertIn("aten::bernoulli_", random)
        for state, in self.query("SELECT LENGTH(state) FROM generators"):
            self.assertGreater(state, 5000)
        self.assertEqual(len(self.query("SELECT 1 FROM generators")), 2)

    def test_lstm(self):
        self.check("lstm", "--batch", "32")
        (count,), = self.query("SELECT COUNT(*) FROM ops JOIN layers ON layers.id = ops.layer"
                               " WHERE path = 'cells.1' AND phase = 'backward'")
        self.assertGreater(count, 100)

    def test_a_step_between_that_nobody_counts(self):
        done, _ = self.record_as_unwatched("lstm", "--batch", "32", options=("--steps", "2", "--every", "2"))
        self.assertEqual((done["steps"], done["dropped"]), (2, 0))
        self.assert_live_bytes()
        steps = self.query("SELECT first_seq, end_seq FROM steps ORDER BY id")
        used = [set(self.query(
            "SELECT storages.id FROM storages JOIN tensors ON storage = storages.id JOIN op_inputs ON tensor = tensors.id "
            "JOIN ops ON ops.id = op WHERE category IN ('parameter', 'optimizer state') AND seq BETWEEN %d AND %d" % step))
            for step in steps]
        self.assertGreater(len(used[1]), 20)
        self.assertLessEqual(used[0], used[1])  # the first step makes the optimizer's states

    def test_tensors_of_other_kinds(self):
        """A wrapper that runs an op whenever it is asked for its sizes, and a nested tensor, live on in the program."""
        script = self.script("""
            import torch
            class Wrapper(torch.Tensor):
                @staticmethod
                def __new__(cls, inner):
                    self = torch.Tensor._make_wrapper_subclass(
                        cls, inner.shape, dtype=inner.dtype, device=inner.device, dispatch_sizes_strides_policy="sizes")
                    self.inner = inner
                    return self
                @classmethod
                def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                    torch.ones(2) + 1
                    return func(*[each.inner if isinstance(each, cls) else each for each in args], **(kwargs or {}))
            kept = [Wrapper(torch.ones(3, 4)), torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])]
        """)
        with open(script, "a") as file:
            file.write(MLP.replace("    optimizer.zero_grad()", "    kept.append(kept[1] * 2)\n    optimizer.zero_grad()"))
        plain = subprocess.run([self.python, script], capture_output=True, text=True, timeout=120, check=True)
        done, output = self.recorded(self.python, script, options=("--steps", "2"))
        self.assertEqual(done["steps"], 2)
        for line in plain.stdout.splitlines():
            self.assertIn(line, output)
        self.assertEqual({why for why, in self.query("SELECT why FROM gaps")}, {"they have no plain storage"})
        self.assertEqual(len(self.query("SELECT id FROM storages WHERE category = 'parameter'")), 4)

    def test_unusual_ops_compute_what_they_do_unwatched(self):
        done, output = self.record_as_unwatched("unusual", options=("--steps", "2", "--warmup", "1"))
        self.assertEqual(done["steps"], 2)
        self.assertNotIn("through Python", output)

    def test_garbage_collection_does_not_change_the_graph(self):
        """Python lists its objects by when it last collected garbage."""
        script = self.script("""
            import gc, sys, torch
            gc.disable()
            layers = []
            for width in (4, 4, 4, 4):
                layers += [torch.nn.Linear(width, 4), torch.nn.BatchNorm1d(4)]
                if "collect" in sys.argv and len(layers) == 4:
                    gc.collect()
            model = torch.nn.Sequential(*layers)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
            for _ in range(3):
                optimizer.zero_grad()
                model(torch.randn(8, 4)).pow(2).mean().backward()
                optimizer.step()
            """)
        names = []
        for way in ("leave", "collect"):
            self.session = self.session + way
            self.recorded(self.python, script, way, options=("--warmup", "1"))
            names.append(self.query("select o.name, t.storage from ops o join op_inputs i on i.op = o.id join tensors t on "
                                    "t.id = i.tensor order by o.seq, i.position"))
        self.assertEqual(*names)

    def test_no_module_is_imported_for_the_recording(self):
        """Some print as they are imported, or change what torch does."""
        script = self.script(MLP + "print('imported', *sorted(sys.modules))\n")
        imported = lambda output: {name for line in output.splitlines() if line.startswith("imported ") for name in line.split()}
        alone = imported(subprocess.check_output([self.python, script], text=True, timeout=300))
        _, output = self.recorded(self.python, script)
        ours = imported(output) - alone
        self.assertIn("_highwater.install", ours)
        self.assertEqual({name.split(".")[0] for name in ours}, {"_highwater"})

    def test_the_capture_through_python_records_the_same(self):
        """But for what a dispatch mode brings about: autograd's aliases of what it saves become ops, torch 2
        adds gradients up out of place (and linear layers with three-dimensional inputs their bias)."""
        script = os.path.join(TRAINING, "lstm.py")
        seen = {}
        for way in ("native", "python"):
            self.session = os.path.join(self.folder, way + ".hws")
            _, output = self.recorded(self.python, script, "--batch", "8", "--steps", "2",
                                      options=("--steps", "1", "--warmup", "1"),
                                      environment={**os.environ, "HIGHWATER_CAPTURE": way})
            self.assertNotIn("through Python", output)
            self.assert_consistent()
            ops = self.query("SELECT rtrim(name, '_'), phase, path, random FROM ops JOIN layers ON layers.id = layer"
                             " WHERE name NOT LIKE '%::detach' AND name <> 'aten::zeros' ORDER BY ops.id")
            self.assertGreater(len(ops), 500)
            seen[way] = ops, self.info()["baseline"]["peak_bytes"], self.query(
                "SELECT category, SUM(bytes) FROM storages WHERE category IN"
                " ('activation', 'optimizer state', 'parameter') GROUP BY category")
        for native, python in zip(*(ways[0] for ways in seen.values()), strict=True):
            self.assertEqual(native, python)
        self.assertEqual(seen["native"][2], seen["python"][2])
        self.assertLessEqual(seen["native"][1], seen["python"][1])


@needs_torch2
@nightly.repeats("test_lstm")
class ModelsOnTorch2(Models):
    python = TORCH2
    gradients = 2  # zero_grad() lets go of them


class Programs(Recording):
    def test_isolated_python_and_module(self):
        script = self.script(MLP)
        done, _ = self.recorded(PYTHON, "-E", "-I", "-S", "-c",
                                "import sys, runpy; sys.path.append('/usr/lib/python3/dist-packages');"
                                "sys.argv[:] = ['train', '3']; runpy.run_path(%r)" % script)
        self.assertEqual(done["steps"], 3)

    def test_wrapper_and_shebang(self):
        script = self.script("#!/usr/bin/env -S %s\n" % PYTHON + MLP.lstrip())
        os.chmod(script, os.stat(script).st_mode | stat.S_IXUSR)
        wrapper = self.script("#!/bin/sh\necho before\n%s 3\n" % script, "wrapper.sh")
        os.chmod(wrapper, os.stat(wrapper).st_mode | stat.S_IXUSR)
        done, _ = self.recorded(wrapper, options=("--steps", "2"))
        self.assertEqual(done["steps"], 2)

    def test_children_are_left_alone(self):
        script = self.script("""
            import os, subprocess, sys
            subprocess.run([sys.executable, "-c", "import torch"], check=True)  # yields its place: it does not train
            import runpy, torch
            ours = ("LD_PRELOAD", "HIGHWATER_SOCKET", "HIGHWATER_LD_PRELOAD")
            print("left:", [name for name in ours if name in os.environ], file=sys.stderr)
            subprocess.run([sys.executable, "-c", "import torch"], check=True)
            sys.argv = ["train", "3"]
            runpy.run_path(%r)
            """ % self.script(MLP, "inner.py"))
        done, output = self.recorded(PYTHON, script)
        self.assertIn("left: []", output)
        self.assertEqual(done["steps"], 3)

    def test_what_the_program_writes_stays_in_one_piece(self):
        script = self.script(MLP.replace("optimizer.zero_grad()", "sys.stdout.write('begin '); sys.stdout.flush(); optimizer.zero_grad()").replace(
            "print(step", "time.sleep(0.3); print(step").replace("import sys", "import sys, time"))
        plain = subprocess.run([PYTHON, script], capture_output=True, text=True, timeout=300, check=True)
        _, output = self.recorded(PYTHON, script)
        for line in plain.stdout.splitlines():
            self.assertTrue(line.startswith("begin "))
            self.assertIn(line, output.splitlines())

    def test_every_second_step_after_warmup(self):
        self.recorded(PYTHON, self.script(MLP), "8",
                      options=("--steps", "3", "--every", "2", "--warmup", "1"))
        ops = self.query("SELECT steps.id, COUNT(*) FROM steps JOIN ops ON seq >= first_seq"
                         " AND seq < end_seq GROUP BY steps.id")
        self.assertEqual([step for step, _ in ops], [0, 1, 2])
        self.assertEqual(len({count for _, count in ops}), 1)
        begins = [begin for begin, in self.query("SELECT begin_ns FROM steps ORDER BY id")]
        self.assertEqual(begins, sorted(begins))

    def test_a_model_that_changes(self):
        """A module is replaced, a parameter comes into another, an optimizer learns of both."""
        script = self.script(MLP.replace("    optimizer.zero_grad()", """
    if step == 2:
        model[2] = torch.nn.Sequential(torch.nn.Linear(20, 7), torch.nn.Linear(7, 2))
        model[0].weight = torch.nn.Parameter(torch.randn(20, 10))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    optimizer.zero_grad()"""))
        self.recorded(PYTHON, script, "5", options=("--steps", "5"))
        for step, heads in ((1, {"2"}), (2, {"2.0", "2.1"}), (4, {"2.0", "2.1"})):
            paths = {path for path, in self.query(
                "SELECT path FROM ops JOIN layers ON layers.id = layer JOIN steps ON seq >= first_seq AND seq < end_seq "
                "WHERE phase = 'forward' AND steps.id = %d" % step)}
            self.assertEqual(paths - {"(loss)", "(root)"}, {"0", "1"} | heads)
        parameters = self.query("SELECT path, bytes FROM storages JOIN layers ON layers.id = layer"
                                " WHERE category = 'parameter' ORDER BY 1, 2")
        self.assertEqual(parameters, [("0", 80), ("0", 800), ("0", 800), ("2", 8), ("2", 160), ("2.0", 28),
                                      ("2.0", 560), ("2.1", 8), ("2.1", 56)])

    def test_a_second_model_that_is_called_later(self):
        """Its optimizer is known from the start; whose the parameters are when it first runs."""
        for way in ("native", "python"):
            with self.subTest(way):
                self.session = os.path.join(self.folder, way + ".hws")
                self.recorded(PYTHON, self.script("""
                    import torch
                    generator = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Tanh(), torch.nn.Linear(6, 3))
                    critic = torch.nn.ModuleDict({"score": torch.nn.Linear(3, 1)})
                    critic.forward = lambda x: torch.nn.Softplus()(critic["score"](x))
                    optimizers = [torch.optim.Adam(model.parameters()) for model in (generator, critic)]
                    for step in range(6):
                        made = generator(torch.randn(5, 4))
                        optimizer = optimizers[step // 2 % 2]
                        optimizer.zero_grad()
                        (made.pow(2) if step < 2 else torch.nn.Softplus()(critic(made))).mean().backward()
                        optimizer.step()
                    """), options=("--steps", "6"), environment={**os.environ, "HIGHWATER_CAPTURE": way})
                owned = self.query("SELECT path, category, COUNT(*) FROM storages JOIN layers ON layers.id = layer"
                                   " WHERE category IN ('parameter', 'optimizer state') AND path LIKE '%score%'"
                                   " GROUP BY 1, 2 ORDER BY 1, 2")
                self.assertEqual([(path, category) for path, category, _ in owned],
                                 [("ModuleDict.score", "optimizer state"), ("ModuleDict.score", "parameter")])
                self.assertEqual(owned[1][2], 2)
                self.assertEqual(self.query("SELECT COUNT(*) FROM storages JOIN layers ON layers.id = layer"
                                            " WHERE path = '(root)' AND category = 'parameter'"), [(0,)])
                # Made again at every step, and called by itself: one layer.
                self.assertEqual(self.query("SELECT COUNT(*) FROM layers WHERE path LIKE 'Softplus%'"), [(1,)])

    def test_contents(self):
        self.recorded(PYTHON, self.script(MLP), options=("--steps", "1", "--warmup", "1"))
        plain = {storage for storage, in self.query("SELECT storage FROM contents")}
        os.remove(self.session)
        self.recorded(PYTHON, self.script(MLP),
                      options=("--steps", "1", "--warmup", "1", "--contents"))
        stored = dict(self.query("SELECT storage, LENGTH(data) FROM contents"))
        self.assertLess(len(plain), len(stored))
        weights = self.query("SELECT id, bytes FROM storages WHERE category = 'parameter'")
        self.assertEqual(len(weights), 4)
        for id, size in weights:
            self.assertEqual(stored[id], size)

    def test_forked_workers_are_not_captured(self):
        script = self.script(MLP.replace("    loss.backward()", """    loss.backward()
    import os
    child = os.fork()
    if child == 0:
        model(torch.randn(4, 10)).sum().backward()
        optimizer.step()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0"""))
        done, _ = self.recorded(PYTHON, script)
        self.assertEqual(done["steps"], 3)
        # Two linear layers in each of three steps; the child's forward is not among them.
        forward = self.query("SELECT 1 FROM ops WHERE name = 'aten::addmm' AND phase = 'forward'")
        self.assertEqual(len(forward), 6)

    def test_sparse_gradients_become_a_gap(self):
        done, _ = self.recorded(PYTHON, self.script("""
            import torch
            model = torch.nn.Embedding(10, 4, sparse=True)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for step in range(3):
                optimizer.zero_grad()
                model(torch.randint(0, 10, (5,))).pow(2).sum().backward()
                optimizer.step()
            """))
        self.assertEqual(done["steps"], 3)
        self.assertTrue(any("plain storage" in why for why, in self.query("SELECT why FROM gaps")))


class BadPrograms(Recording):
    def test_no_such_program(self):
        self.fails(self.record("/no/such/program"), "cannot start", "no such program")

    def test_not_python(self):
        self.fails(self.record("/bin/echo", "hello"), "not Python", "hint:")

    def test_no_torch(self):
        self.fails(self.record(PYTHON, "-c", "print(1)"), "never seen to import torch")

    def test_dies_before_a_step_ends(self):
        script = self.script(MLP.replace("    loss.backward()", "    sys.exit(9)"))
        self.fails(self.record(PYTHON, script), "completed no step", "a forward", "status 9")

    def test_dies_between_backward_and_optimizer(self):
        script = self.script(MLP.replace("    optimizer.step()", "    sys.exit(9)"))
        done, _ = self.recorded(PYTHON, script)
        self.assertEqual((done["steps"], done["exit_status"]), (1, 9))
        self.assertEqual([what for what, in self.query("SELECT what FROM gaps")], ["the ends of steps"])

    def test_no_training(self):
        self.fails(self.record(PYTHON, "-c", "import torch; torch.ones(2).sum()"), "no training")

    def test_exception_after_a_step(self):
        script = self.script(MLP + "\nraise ValueError('boom')\n")
        done, output = self.recorded(PYTHON, script, options=("--steps", "9"))
        self.assertEqual((done["steps"], done["exit_status"]), (3, 1))
        self.assertEqual(self.query("SELECT exit_status FROM processes"), [(1,)])
        self.assertIn("boom", output)
        self.assertIn("3 of 9 steps", output)

    def test_program_killed_before_a_step(self):
        for begin in ("", "import torch; "):
            self.fails(self.record(PYTHON, "-c", begin + "import os; os.kill(os.getpid(), 11)"),
                       "ended by signal 11", "before it completed a step")

    def test_program_killed_between_steps(self):
        script = self.script(MLP + "\nimport os; os.kill(os.getpid(), 9)\n")
        done, output = self.recorded(PYTHON, script, options=("--steps", "9"))
        self.assertEqual(done["steps"], 3)
        self.assertEqual(self.query("SELECT exit_status FROM processes"), [(137,)])
        self.assertIn("signal 9", output)
        self.assertGreater(self.info()["ops"], 0)

    def test_recorder_killed_leaves_finished_steps_and_a_running_program(self):
        script = self.script(MLP.replace("    print(", "    import time; time.sleep(0.1)\n    print("))
        recorder = subprocess.Popen(
            [HIGHWATER, "record", "--json", "-o", self.session, "--steps", "30", "--", PYTHON,
             script, "25"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for line in recorder.stderr:
            if line.startswith("12 "):
                break
        recorder.send_signal(signal.SIGKILL)
        recorder.wait()
        rest = recorder.stderr.read()  # until the program, which holds the other end, is done
        recorder.stdout.close()
        recorder.stderr.close()
        self.assertIn("\n24 ", "\n" + rest)
        (steps,), = self.query("SELECT COUNT(*) FROM steps")
        self.assertGreaterEqual(steps, 5)
        self.assertGreater(self.info()["ops"], 0)

    def test_later_steps_are_packed_and_read_like_the_first_ones(self):
        self.recorded(PYTHON, self.script(MLP), "12", options=("--steps", "12"))
        self.assertEqual(self.query("SELECT step FROM packed_steps"), [(8,), (9,), (10,), (11,)])
        (ops,), = self.query("SELECT COUNT(*) FROM ops")
        later = self.info()["ops"]
        self.assertGreater(later, 10)
        tables = os.path.join(self.folder, "tables")
        subprocess.run([HIGHWATER, "export", self.session, "--to", "csv", "-o", tables], check=True, timeout=120,
                       capture_output=True)
        with open(os.path.join(tables, "ops.csv")) as file:
            self.assertEqual(len(list(csv.reader(file))), 1 + ops + 4 * later)
        self.assertNotIn("packed_steps.csv", os.listdir(tables))

    def test_output_is_never_overwritten(self):
        with open(self.session, "w") as file:
            file.write("mine")
        done = self.record(PYTHON, self.script(MLP))
        self.assertEqual(done.returncode, 4)
        self.assertIn("exists already", done.stderr)
        with open(self.session) as file:
            self.assertEqual(file.read(), "mine")

    def test_an_earlier_session_gets_another_name(self):
        for _ in range(2):
            self.assertEqual(self.record(PYTHON, self.script(MLP)).returncode, 0)
            (processes,), = self.query("SELECT COUNT(*) FROM processes")
            self.assertEqual(processes, 1)
        self.assertTrue(os.path.exists(self.session.replace(".hws", ".1.hws")))


if __name__ == "__main__":
    if subprocess.run([PYTHON, "-c", "import torch, torchvision"], capture_output=True).returncode:
        print("skipped: torch is missing; install python3-torch and python3-torchvision")
        sys.exit(77)
    nightly.main()
