#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Programs with torch.compile: recorded as they run, kernel by kernel, and trained under plans of what was recorded."""
import json
import os
import sqlite3
import subprocess
import sys
import textwrap
import unittest

import budget_test
import nightly
from sessions import HIGHWATER, InFolder
from torch2 import TORCH2, needs_torch2

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "profiler", "agent", "shim"))
import compiled_code  # noqa: E402

# Compiled code in unusual places: a kernel without tensors (the bag's offsets), subgraphs, a backward under autocast, and
# a mode of the program's that sees ops.
UNUSUAL = budget_test.BEGIN + """
    from torch.utils._python_dispatch import TorchDispatchMode
    class Prints(TorchDispatchMode):
        def __torch_dispatch__(self, op, types, arguments=(), named=None):
            print(op)
            return op(*arguments, **(named or {}))
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.bag, self.one, self.two = nn.EmbeddingBag(50, 64), nn.Linear(64, 256), nn.Linear(256, 64)
        def forward(self, words):
            x = torch.tanh(self.one(self.bag(words)))
            x = torch.cond(x.sum() > 0, lambda y: torch.sin(y) * 1.5 + y, lambda y: torch.cos(y) * y.tanh(), (x,))
            return self.two(x)
    model = Model()
    run, optimizer = torch.compile(model, fullgraph=True), torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(4):
        optimizer.zero_grad()
        out = run(torch.randint(0, 50, (512, 8)))
        with torch.autocast("cpu", torch.bfloat16, enabled=step % 2 == 1):
            loss = out.square().mean()
            if step == 2:
                with Prints(): loss.backward()
            else:
                loss.backward()
        optimizer.step()
        print("step", step, loss.item().hex())
    digest([model], [optimizer])
    """

# What inductor writes, shortened.
CODE = """
    import torch
    empty_strided_cpu = None
    def true_graph_0(args):
        x, = args
        buf0 = empty_strided_cpu((2, ), (1, ), torch.float32)
        cpp_fused_1(x, buf0)
        return (buf0, )
    class Runner:
        def call(self, args):
            primals_1, primals_2, s0 = args
            args.clear()
            buf0 = empty_strided_cpu((4, 8), (8, 1), torch.float32)
            # Topologically Sorted Source Nodes: [linear], Original ATen: [aten.mm]
            extern_kernels.mm(primals_1, primals_2, out=buf0)
            buf1 = empty_strided_cpu((4, 1), (1, 4), torch.float32)
            buf2 = reinterpret_tensor(buf1, (4, 1), (1, 1), 0); del buf1  # reuse
            buf3 = empty_strided_cpu((4, 8), (8, 1), torch.bool)
            buf4 = buf0; del buf0  # reuse
            cpp_fused_0(buf4, primals_1, buf2, buf3, s0)
            buf5 = empty_strided_cpu((8, 4), (1, 8), torch.float32)
            extern_kernels.mm(primals_1, primals_2, out=buf5)
            buf6 = empty_strided_cpu((8, ), (1, ), torch.float32)
            cpp_fused_1(buf5, reinterpret_tensor(buf6, (4, ), (1, ), 4))
            return (buf2, buf3, buf4, buf6, )
"""


class OtherCode(unittest.TestCase):
    """Of call(), run with kernels that tell what they are given."""

    def run_code(self, text):
        told = []
        kinds = {"cpp_fused_0": ["written", "read", "written", "written", "number"], "cpp_fused_1": ["read", "written"]}

        def name_of(call):
            def op(read, written, numbers, layouts):
                told.append((call.kernel, call.kinds, [str(each) for each in call.types], read, written, numbers, layouts))
                return ["%s made %d" % (call.kernel, i) for i in range(call.kinds.count("made"))]
            names["op_" + call.kernel] = op
            return "op_" + call.kernel

        class Products:
            @staticmethod
            def mm(*arguments, **named):
                told.append(("mm", *arguments, named.get("out")))
                return "a product"

        class Types:
            float32, bool = "float32", "bool"

        names = {"torch": Types, "extern_kernels": Products,
                 "reinterpret_tensor": lambda *arguments: ("part", *arguments),
                 compiled_code.EMPTY: lambda *arguments: ("empty", *arguments),
                 compiled_code.SEEN: lambda: False,
                 compiled_code.PRODUCT: lambda function, *arguments, **named: function(*arguments, **named),
                 compiled_code.AT: lambda place, call, arguments, named: told.append(place) or call(*arguments, **named)}
        code = compiled_code.rewritten(text, kinds, name_of, names, "code.py",
                                       place_of=lambda sources, _: 7 if sources == ["linear"] else None)
        self.assertEqual(set(code), {"call", "true_graph_0"})

        def call(self, args):
            pass
        call.__code__ = code["call"]
        call.__globals__.update(names)
        return call(None, ["x", "w", 5]), told

    def test_kernels_that_something_else_calls_are_of_no_known_form(self):
        text = textwrap.dedent(CODE) + "later = lambda x: cpp_fused_1(x, x)\n"
        self.assertIsNone(compiled_code.rewritten(text, {"cpp_fused_0": [], "cpp_fused_1": []}, None, {}, "code.py"))

    def test_kernels_make_what_is_allocated_for_them_to_fill(self):
        results, told = self.run_code(textwrap.dedent(CODE))
        place, product, fused, other, last = told
        self.assertEqual((place, product), (7, ("mm", "x", "w", None)))
        self.assertEqual(fused, ("cpp_fused_0", ["written", "read", "made", "made", "number"], ["float32", "bool"], ["x"],
                                 ["a product"], [5], [2, 4, 1, 1, 1, 2, 4, 8, 8, 1]))
        # A product in another layout, and a part of a buffer, are filled where they were allocated.
        self.assertEqual(other, ("mm", "x", "w", ("empty", (8, 4), (1, 8), "float32")))
        self.assertEqual(last[:3], ("cpp_fused_1", ["read", "written"], []))
        self.assertEqual(last[4], [("part", ("empty", (8,), (1,), "float32"), (4,), (1,), 4)])
        self.assertEqual(results, ("cpp_fused_0 made 0", "cpp_fused_0 made 1", "a product", ("empty", (8,), (1,), "float32")))


@needs_torch2
class Compiled(InFolder):
    def setUp(self):
        super().setUp()
        self.environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore",
                            "TORCHINDUCTOR_CACHE_DIR": os.path.join(self.folder, "inductor")}

    def lines(self, *command):
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=self.environment, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def train(self, script, *arguments):
        report = os.path.join(self.folder, "report.json")
        lines = self.lines(HIGHWATER, "train", *arguments, "--report", report, "--", TORCH2, script)
        with open(report, encoding="utf-8") as file:
            return lines, json.load(file)

    def recorded(self, run):
        """A program, its lines, a session of it."""
        script = self.script(budget_test.COMPILED + "    train(" + run + ")\n")
        session = os.path.join(self.folder, "s.hws")
        plain = self.lines(TORCH2, script)
        self.assertEqual(self.lines(HIGHWATER, "record", "-o", session, "--steps", "2", "--", TORCH2, script), plain)
        return script, plain, session

    def check_plan(self, script, plain, session, ratio):
        plan = os.path.join(self.folder, "p.json")
        self.lines(HIGHWATER, "plan", session, "--ratio", str(ratio), "--time-limit", "5", "-o", plan)
        lines, report = self.train(script, session, plan)
        self.assertEqual(lines, plain)
        self.assertEqual(report["mismatches"], [])
        self.assertEqual(report["steps_planned"], 5)  # the first one, in which it is compiled, too
        self.assertEqual(report["measured_peak_bytes"], report["predicted_peak_bytes"])

    def test_a_whole_model(self):
        script, plain, session = self.recorded("torch.compile(model)")
        info = json.loads(self.lines(HIGHWATER, "info", session, "--json"))
        self.assertEqual(info["gaps"], [])
        database = sqlite3.connect(session)
        names = [name for (name,) in database.execute("SELECT name FROM ops WHERE name LIKE 'inductor_fused::%'")]
        layers = [path for (path,) in database.execute("SELECT DISTINCT path FROM layers")]
        database.close()
        self.assertGreater(len(names), 20)
        self.assertIn("0.1", layers)  # of the kernel for a GELU
        by_line = self.lines(HIGHWATER, "info", session, "--by", "line")
        self.assertRegex(by_line, r"MB +2\.10 MB  train\.py:\d+ train, ")  # no module of the program's has a forward
        _, report = self.train(script, "--budget", "100GB")
        peak = report["measured_peak_bytes"]
        self.assertAlmostEqual(info["baseline"]["peak_bytes"] / peak, 1, delta=0.001)
        self.check_plan(script, plain, session, 0.8)
        lines, report = self.train(script, "--budget", str(int(0.7 * peak)))
        self.assertEqual(lines, plain)
        self.assertEqual(report["mismatches"], [])
        self.assertLessEqual(report["measured_peak_bytes"], 0.7 * peak)

    @nightly.nightly
    def test_code_in_unusual_places(self):
        script, session = self.script(UNUSUAL), os.path.join(self.folder, "s.hws")
        plain = self.lines(TORCH2, script)
        self.assertIn("aten.mm.out", plain)
        self.assertEqual(self.lines(HIGHWATER, "record", "-o", session, "--", TORCH2, script), plain)
        gaps = json.loads(self.lines(HIGHWATER, "info", session, "--json"))["gaps"]
        self.assertEqual([gap["what"] for gap in gaps], ["kernels of torch.compile"])  # in the mode
        self.assertEqual(self.train(script, "--budget", "100GB")[0], plain)

    def test_a_training_that_has_compiled(self):
        """Attached, its code is compiled once more; then it is recorded, and trains under a plan, with its own lines."""
        ends, session, plan, progress = (os.path.join(self.folder, name) for name in ("ends", "s.hws", "p.json", "steps"))
        script = self.script(budget_test.COMPILED.replace("range(5)", "range(int(sys.argv[1]))").replace(
            "import hashlib, torch", "import hashlib, os, sys, time, torch").replace(
            "loss.item().hex())", "loss.item().hex(), flush=True); time.sleep(0.05)\n"
            "            if os.path.exists(sys.argv[2]): break") + "    train(torch.compile(model))\n")
        program = subprocess.Popen([TORCH2, script, "1000", ends], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   text=True, env=self.environment)
        self.addCleanup(program.kill)
        lines = [program.stdout.readline() for _ in range(2)]
        self.lines(HIGHWATER, "attach", str(program.pid), "-o", session, "--steps", "2")
        self.assertEqual(json.loads(self.lines(HIGHWATER, "info", session, "--json"))["gaps"], [])
        self.lines(HIGHWATER, "plan", session, "--ratio", "0.7", "--time-limit", "5", "-o", plan)
        report = os.path.join(self.folder, "report.json")
        applied = subprocess.Popen([HIGHWATER, "apply", str(program.pid), session, plan, "--report", report,
                                    "--progress", progress], stderr=subprocess.PIPE, text=True)
        with program.stdout:
            steps = 0
            while steps < 5:
                lines.append(program.stdout.readline())
                self.assertTrue(lines[-1])
                if os.path.exists(progress):
                    with open(progress) as file:
                        steps = len(file.readlines())
            with open(ends, "w"):
                pass
            lines += program.stdout.readlines()
        self.assertEqual((program.wait(), applied.wait()), (0, 0), applied.stderr.read())
        applied.stderr.close()
        with open(report, encoding="utf-8") as file:
            report = json.load(file)
        self.assertGreater(report["steps_planned"], 3)
        self.assertEqual(report["steps_diverged"], 0)
        self.assertEqual(report["measured_peak_bytes"], report["predicted_peak_bytes"])
        self.assertEqual("".join(lines), self.lines(TORCH2, script, str(len(lines) - 1), os.devnull + "/none"))

    @nightly.nightly
    def test_parts(self):
        self.check_plan(*self.recorded("nn.Sequential(*[torch.compile(each) for each in model])"), 0.6)


if __name__ == "__main__":
    nightly.main()
