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

    def check(self, way, losses, session):
        compiled = way.startswith("compile")
        warmup = "1" if way == "compile-whole" else "0"  # then it is compiled while somebody watches
        done = subprocess.run([HIGHWATER, "record", "-o", session, "--warmup", warmup, "--", self.python, SCRIPT, way],
                              capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        seen = [line for line in done.stdout.splitlines() if line.startswith(way + " ")]
        if compiled:  # captured steps run without the compiler, which rounds differently
            for mine, theirs in zip(seen, losses, strict=True):
                self.assertAlmostEqual(float.fromhex(mine.split()[2]), float.fromhex(theirs.split()[2]), places=6)
        else:
            self.assertEqual(seen, losses)
        info = json.loads(subprocess.run([HIGHWATER, "info", session, "--json"], capture_output=True, text=True,
                                         timeout=60, check=True).stdout)
        self.assertEqual([gap["what"] for gap in info["gaps"]], ["compiled code"] if compiled else [])
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
