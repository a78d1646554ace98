#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Records the ways of training that break naive recorders: complete, exact, and not one bit changed."""
import json
import os
import sqlite3
import subprocess
import tempfile
import unittest

from torch2 import TORCH2, needs_torch2

HIGHWATER = os.path.join(os.environ.get("HIGHWATER_BIN", "build/release/bin"), "highwater")
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "training", "ways.py")

LOSS_BYTES = 16            # a scalar may come between two ops
# No optimizer of torch's.
BY_HAND = """
import torch
from torch import nn
torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(*[part for _ in range(4) for part in (nn.Linear(64, 64), nn.Tanh())])
for step in range(8):
    loss = model(torch.randn(128, 64)).square().mean()
    loss.backward()
    with torch.no_grad():
        for each in model.parameters():
            each -= 0.01 * each.grad
            each.grad = None
    print("step", step, loss.item().hex())
"""
GENERATOR_BYTES = 5056 + LOSS_BYTES  # checkpoints keep generator states, which no op makes


class Ways(unittest.TestCase):
    python = "/usr/bin/python3"
    ways = ["plain", "checkpoint", "checkpoint-reentrant", "accumulate", "two-optimizers", "foreach", "amp",
            "create-graph", "thread", "loader", "lazy", "mode"]

    def test_every_way(self):
        plain = subprocess.run([self.python, SCRIPT, *self.ways], capture_output=True, text=True, timeout=300)
        self.assertEqual(plain.returncode, 0, plain.stderr)
        for way in self.ways:
            losses = [line for line in plain.stdout.splitlines() if line.startswith(way + " ")]
            self.assertEqual(len(losses), 4)
            with self.subTest(way), tempfile.TemporaryDirectory() as folder:
                self.check(way, losses, os.path.join(folder, "s.hws"))

    def test_updates_by_hand(self):
        with tempfile.TemporaryDirectory() as folder:
            script, session, report = (os.path.join(folder, name) for name in ("train.py", "s.hws", "r.json"))
            with open(script, "w") as file:
                file.write(BY_HAND)
            run = lambda *command: subprocess.run(command, capture_output=True, text=True, timeout=300)
            plain = run(self.python, script)
            for warmup in ("0", "1"):
                done = run(HIGHWATER, "record", "-o", session, "--warmup", warmup, "--", self.python, script)
                self.assertEqual((done.returncode, done.stdout), (0, plain.stdout), done.stderr)
            info = json.loads(run(HIGHWATER, "info", session, "--json").stdout)
            self.assertEqual([gap["what"] for gap in info["gaps"]], ["the ends of steps"])
            database = sqlite3.connect(session)
            ops = database.execute("SELECT count(*) FROM ops JOIN steps ON seq >= first_seq AND seq < end_seq"
                                   " GROUP BY steps.id").fetchall()
            phases = {phase for phase, in database.execute("SELECT DISTINCT phase FROM ops")}
            database.close()
            self.assertEqual(len(ops), 3)
            self.assertEqual(len(set(ops)), 1)  # each is one step
            self.assertEqual(phases, {"forward", "backward", "optimizer"})
            done = run(HIGHWATER, "train", "--budget", str(int(0.95 * info["baseline"]["peak_bytes"])), "--report", report, "--",
                       self.python, script)
            self.assertEqual((done.returncode, done.stdout), (0, plain.stdout), done.stderr)
            with open(report) as file:
                told = json.load(file)
            self.assertGreater(told["steps"], 4)
            self.assertGreater(told["evictions"], 0)
            self.assertLessEqual(told["measured_peak_bytes"], told["budget_bytes"])

    def test_an_optimizer_that_comes_late(self):
        text = BY_HAND.replace("    with torch", "    if step > 3:\n        torch.optim.SGD(model.parameters(), lr=0.1).step()\n"
                               "    with torch").replace("each -= 0.01", "each -= (0.01 if step < 4 else 0.0)")
        with tempfile.TemporaryDirectory() as folder:
            script, session = os.path.join(folder, "train.py"), os.path.join(folder, "s.hws")
            with open(script, "w") as file:
                file.write(text)
            plain = subprocess.run([self.python, script], capture_output=True, text=True, timeout=300)
            done = subprocess.run([HIGHWATER, "record", "-o", session, "--steps", "5", "--", self.python, script],
                                  capture_output=True, text=True, timeout=300)
            self.assertEqual((done.returncode, done.stdout), (0, plain.stdout), done.stderr)
            database = sqlite3.connect(session)
            steps = database.execute("SELECT count(*) FROM steps").fetchone()
            database.close()
            self.assertEqual(steps, (5,))

    def check(self, way, losses, session):
        warmup = "1" if way == "compile-whole" else "0"  # then it is compiled while somebody watches
        done = subprocess.run([HIGHWATER, "record", "-o", session, "--warmup", warmup, "--", self.python, SCRIPT, way],
                              capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        seen = [line for line in done.stdout.splitlines() if line.startswith(way + " ")]
        self.assertEqual(seen, losses)
        info = json.loads(subprocess.run([HIGHWATER, "info", session, "--json"], capture_output=True, text=True,
                                         timeout=60, check=True).stdout)
        self.assertEqual([gap["what"] for gap in info["gaps"]], [])
        database = sqlite3.connect(session)
        peaks = database.execute("SELECT allocator_peak_bytes FROM steps ORDER BY id").fetchall()
        phases = dict(database.execute("SELECT phase, count(*) FROM ops GROUP BY phase"))
        outside = database.execute("SELECT name FROM ops WHERE layer IS NULL").fetchall()
        database.close()
        self.assertEqual(len(peaks), 3)
        self.assertEqual(set(phases), {"forward", "backward", "optimizer"})
        self.assertEqual(outside, [])
        missed = peaks[-1][0] - info["baseline"]["peak_bytes"]
        self.assertGreaterEqual(missed, 0)
        self.assertLessEqual(missed, GENERATOR_BYTES if way.startswith("checkpoint") else LOSS_BYTES)


@needs_torch2
class WaysOnTorch2(Ways):
    python = TORCH2
    ways = Ways.ways + ["fused", "compile", "compile-whole", "checkpoint-selective"]


if __name__ == "__main__":
    unittest.main(verbosity=2)
