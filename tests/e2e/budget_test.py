#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Programs that train within a number of bytes, nothing recorded before: the same lines as alone, never above it."""
import json
import os
import re
import subprocess
import unittest
import unittest.mock

import nightly
import train_test
from sessions import InFolder, once
from torch2 import TORCH2, needs_torch2
from train_test import BEGIN, HIGHWATER

# Steps of one kind, each on another slice of what is there, and time for a plan to take over.
LONG = train_test.DEEP.replace("step in range(8)", "step in range(30)").replace("64 if step == 6 else 256", "256").replace(
    "torch.randn(n, 96)", "data.narrow(0, int(torch.randint(0, 250, ())), n)").replace(
    "optimizer = ", "data = torch.randn(512, 96); optimizer = ").replace(
    "if step == 4:", "if step == 20:").replace("import hashlib, torch", "import hashlib, os, time, torch").replace(
    "loss.backward()", "loss.backward(); time.sleep(1 if step > 5 and os.environ.get('SLOW') else 0)")

# A model for torch.compile, whole or in parts.
COMPILED = BEGIN + """
    model = nn.Sequential(*[nn.Sequential(nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 128), nn.Dropout(0.1),
                                          nn.LayerNorm(128)) for _ in range(8)])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    def train(run):
        for step in range(5):
            x = torch.randn(1024, 128)
            optimizer.zero_grad()
            loss = (run(x) - x).square().mean()
            loss.backward()
            optimizer.step()
            print("step", step, loss.item().hex())
        digest([model], [optimizer])
"""

# Another length and another tree in every step: no two steps have the same ops.
DYNAMIC = BEGIN + """
    cell, head = nn.Linear(192, 96), nn.Linear(96, 4)
    steps, optimizer = nn.LSTMCell(96, 96), None
    modules = nn.ModuleList([cell, head, steps])
    optimizer = torch.optim.Adam(modules.parameters(), lr=1e-3)
    def fold(nodes):
        while nodes.shape[1] > 1:
            n = nodes.shape[1] // 2
            pairs = torch.tanh(cell(torch.cat([nodes[:, :n], nodes[:, n:2 * n]], -1)))
            nodes = torch.cat([pairs, nodes[:, 2 * n:]], 1)
        return nodes[:, 0]
    for step in range(10):
        x = torch.randn(64, int(torch.randint(10, 60, ())), 96)
        h, c, outs = torch.zeros(64, 96), torch.zeros(64, 96), []
        for t in range(x.shape[1]):
            h, c = steps(x[:, t], (h, c))
            outs.append(h)
            if h.mean() > 0.02: break
        loss = head(fold(torch.stack(outs, 1))).square().mean() + head(fold(x)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("step", step, loss.item().hex())
    digest([modules], [optimizer])
    """

# What is made first comes from leaves that the program lets go of: it stays, and much could be made from it again only.
TREE = BEGIN + """
    cell, head = nn.Linear(192, 480), nn.Linear(96, 4)
    modules = nn.ModuleList([cell, head])
    optimizer = torch.optim.Adam(modules.parameters(), lr=1e-3)
    def join(left, right):
        i, fl, fr, o, u = cell(torch.cat([left[0], right[0]], 1)).chunk(5, 1)
        c = torch.sigmoid(i) * torch.tanh(u) + torch.sigmoid(fl) * left[1] + torch.sigmoid(fr) * right[1]
        return torch.sigmoid(o) * torch.tanh(c), c
    for step in range(5):
        nodes = [(leaf, torch.zeros_like(leaf)) for leaf in torch.randn(48, 128, 96)]
        while len(nodes) > 1:
            nodes = [join(nodes[i], nodes[i + 1]) for i in range(0, len(nodes) - 1, 2)] + nodes[len(nodes) & ~1:]
        loss = head(nodes[0][0]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("step", step, loss.item().hex())
    digest([modules], [optimizer])
    """

# A tensor that C++ has filled, one that Python fills through numpy, and one that is made empty and filled by ops.
FILLED = BEGIN + """
    layers = nn.ModuleList(nn.Linear(128, 128) for _ in range(10))
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.01)
    for step in range(5):
        given = torch.tensor([[float(i + step) / 128 for i in range(128)]] * 512)
        seen = torch.empty(512, 128)
        seen.numpy()[:] = 0.25
        noise = torch.empty(512, 128).normal_()
        x = given * 0.5
        for layer in layers: x = torch.tanh(layer(x) + seen * noise)
        loss = (x * given + noise).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("step", step, loss.item().hex(), (given.sum() + seen.sum() + noise.sum()).item().hex())
    digest([layers], [optimizer])
    """


class Training(InFolder):
    """Trains what `python` runs."""
    run_it = train_test.Train.run_it

    def train(self, script, *options, after=()):
        report = os.path.join(self.folder, "report.json")
        done = self.run_it(HIGHWATER, "train", *options, "--report", report, "--", self.python, script, *after)
        with open(report) as file:
            return done, json.load(file)

    def alone(self, program):
        """The script, what it prints alone, and its peak; of the same program once for all tests."""
        script = self.script(program)

        def run():
            plain = self.run_it(self.python, script)
            self.assertEqual(plain.returncode, 0, plain.stderr)
            return plain.stdout, self.train(script)[1]["measured_peak_bytes"]
        return script, *once((self.python, program), run)


class Budget(Training):
    python = "/usr/bin/python3"
    deep = 0.75  # of the budget; where more of the peak is parameters and their states, less can go

    def check(self, program, ratio, *options):
        script, plain, peak = self.alone(program)
        budget = int(ratio * peak)
        done, report = self.train(script, "--budget", str(budget), *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, plain, done.stderr)
        self.assertLessEqual(report["measured_peak_bytes"], budget)
        self.assertGreater(report["measured_peak_bytes"], 0.9 * budget)
        self.assertGreater(report["evictions"], 0)
        self.assertGreater(report["recomputed_ops"], 0)
        return report, done.stderr

    def test_from_the_first_op_on(self):
        report, _ = self.check(train_test.DEEP, self.deep)
        self.assertEqual(report["modes"]["dtr"] + report["modes"]["plan"], report["steps"])
        self.assertGreater(report["measured_overhead"], 0)

    def test_statistics_move_once_and_a_step_may_fail(self):
        self.check(train_test.CONVOLUTIONS, 0.6)

    def test_masks_and_random_ops(self):
        self.check(train_test.MASKED, 0.6)

    def test_other_threads_get_the_bytes(self):
        # Without its own references to everything, which would have to be there when the parameters change. What the
        # threads take beside the backward pass differs from run to run, and with it what there must be room for.
        self.check(train_test.THREADS.replace("optimizer.step()", "del x, kept[:]; optimizer.step()").replace(
            "del x, loss, kept", "del loss, kept").replace("loss.backward()", "[each.result() for each in sums]; loss.backward()"), 0.95)

    def test_who_looks_past_the_dispatcher_gets_the_bytes(self):
        script, plain, peak = self.alone(train_test.WATCHED)
        done, report = self.train(script, "--budget", str(int(0.97 * peak)))
        self.assertEqual((done.returncode, done.stdout), (0, plain), done.stderr)

    def test_no_two_steps_alike(self):
        report, _ = self.check(DYNAMIC, 0.7)
        self.assertEqual(report["modes"]["plan"], 0)

    @nightly.nightly
    def test_leaves_that_are_let_go(self):
        self.check(TREE, 0.9)

    def test_what_no_op_has_filled(self):
        self.check(FILLED, 0.7)

    @nightly.nightly
    def test_every_heuristic(self):
        script, plain, peak = self.alone(train_test.MASKED)
        for heuristic in ("full", "eqclass", "local", "lru", "largest", "msps", "random"):
            with self.subTest(heuristic):
                done, report = self.train(script, "--budget", str(int(0.75 * peak)), "--planner", "dtr:" + heuristic)
                self.assertEqual((done.returncode, done.stdout), (0, plain), done.stderr)
                self.assertLessEqual(report["measured_peak_bytes"], 0.75 * peak)
                self.assertEqual(report["modes"], {"plan": 0, "dtr": report["steps"], "mimose": 0, "none": 0})

    def test_a_plan_takes_over(self):
        script, plain, peak = self.alone(LONG)
        with unittest.mock.patch.dict(os.environ, {"SLOW": "1"}):
            done, report = self.train(script, "--budget", str(int(self.deep * peak)))
        said = done.stderr
        self.assertEqual((done.returncode, done.stdout), (0, plain), said)
        self.assertLessEqual(report["measured_peak_bytes"], self.deep * peak)
        self.assertIn("a plan of 'highwater' takes over", said)
        self.assertGreater(report["modes"]["plan"], 0)
        self.assertEqual(report["modes"]["none"], 0)  # what came before the plan was dropped by DTR or by size
        self.assertLessEqual(report["predicted_peak_bytes"], report["budget_bytes"])

    def test_less_than_one_op_needs(self):
        script, _, peak = self.alone(train_test.DEEP)
        done, report = self.train(script, "--budget", str(peak // 5))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(report["exit_status"], 1)
        self.assertIn("allocate memory", done.stderr)  # the framework's own error
        said = re.search(r"error: .*: (\S+) asked for (\d+) bytes", done.stderr)
        self.assertTrue(said, done.stderr)
        self.assertTrue(said[1].startswith("aten::"), said[0])
        self.assertGreater(int(said[2]), 0)
        self.assertIn("larger --budget", done.stderr)

    def test_a_program_that_goes_on_without_what_was_refused(self):
        script = self.script("""
            import torch
            big = torch.nn.Linear(256, 256)
            optimizer = torch.optim.SGD(big.parameters(), lr=0.1)
            for rows in (1 << 16, 16):
                try:
                    big(torch.randn(rows, 256)).square().mean().backward()
                    optimizer.step()
                except RuntimeError as error:
                    print("refused" if "allocate" in str(error) else error)
            """)
        for limit in ("--budget", "--cap"):
            with self.subTest(limit):
                done, report = self.train(script, limit, "20MB")
                self.assertEqual((done.returncode, done.stdout), (3, "refused\n"), done.stderr)
                self.assertIn("its results may be others", done.stderr)
                self.assertIn(f"give a larger {limit}", done.stderr)
                self.assertLess(done.stderr.index("memory was refused"), done.stderr.index(" steps, "), done.stderr)
                self.assertTrue(report["shortage"])
                self.assertEqual(report["exit_status"], 0)
        done, report = self.train(script, "--budget", "1GB")
        self.assertEqual((done.returncode, done.stdout, report["shortage"]), (0, "", None), done.stderr)

    def test_usage(self):
        for options, said in (((self.session, "p.json", "--budget", "1GB"), "a budget and a plan at once"),
                              (("--budget", "1GB", "--planner", "best"), "there is no planner 'best'"),
                              (("--budget", "much"), "much")):
            done = subprocess.run([HIGHWATER, "train", *options, "--", self.python, "x.py"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(said, done.stderr)


@needs_torch2
@nightly.repeats("test_a_plan_takes_over", "test_a_program_that_goes_on_without_what_was_refused", "test_no_two_steps_alike")
class BudgetWithTorch2(Budget):
    python = TORCH2
    deep = 0.85
    test_every_heuristic = test_usage = None  # the framework has no part in them

    def test_types_of_elements_that_came_later(self):
        self.check(train_test.NARROW, self.deep)

    def compiled(self, program, share, said):
        """Within so much of what lies between its peak and its parameters and states."""
        script, plain, peak = self.alone(program)
        lasting = 4 * 4 * 8 * (2 * 128 * 512 + 512 + 3 * 128)  # parameters, gradients, states
        budget = int(lasting + share * (peak - lasting))
        done, report = self.train(script, "--budget", str(budget), "--partition")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, plain, done.stderr)
        self.assertLessEqual(report["measured_peak_bytes"], budget)
        self.assertRegex(done.stderr, said)

    @nightly.nightly
    def test_what_torch_compile_keeps_of_a_whole_model(self):
        for share in (0.8, 0.6):
            self.compiled(COMPILED + "    train(torch.compile(model, backend='aot_eager'))\n", share,
                          r"a region of torch.compile keeps less for its backward: peak [\d.]+ MB instead of [\d.]+ MB")

    @nightly.nightly
    def test_what_torch_compile_keeps_of_parts(self):
        self.compiled(COMPILED + "    train(nn.Sequential(*[torch.compile(each, backend='aot_eager') for each in model]))\n",
                      0.8, "regions of torch.compile keep less for their backward: 0 % of what the compiler would")


if __name__ == "__main__":
    nightly.main()
