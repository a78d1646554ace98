#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Allocations that fail are made after evictions: a program that would die goes on, with the same lines."""
import json
import os
import subprocess
import unittest

import budget_test
import train_test
from torch2 import TORCH2, needs_torch2
from train_test import HIGHWATER

# The address space has an end: then the machine's allocator itself has no more.
SMALL_MACHINE = train_test.MASKED.replace("512, 64", "16384, 64").replace("step in range(6)", "step in range(4)").replace(
    "        optimizer.zero_grad()", """        if step == 1 and len(sys.argv) > 1:
            pages = int(open("/proc/self/statm").read().split()[0])
            resource.setrlimit(resource.RLIMIT_AS, (pages * 4096 + int(sys.argv[1]),) * 2)
        optimizer.zero_grad()""", 1).replace("import hashlib, torch", "import ctypes, hashlib, resource, sys, torch; ctypes.CDLL(None).mallopt(-3, 1 << 20)")


class Rescue(budget_test.Training):
    python = "/usr/bin/python3"
    cap = 0.8  # of the peak

    def test_a_cap_that_the_program_alone_dies_of(self):
        script, plain, peak = self.alone(train_test.DEEP)
        cap = str(int(self.cap * peak))
        done, report = self.train(script, "--cap", cap)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("allocate memory", done.stderr)
        self.assertEqual(report["rescues"], [])
        progress = os.path.join(self.folder, "progress")
        done, report = self.train(script, "--on-oom", "--cap", cap, "--progress", progress)
        self.assertEqual((done.returncode, done.stdout), (0, plain), done.stderr)
        self.assertLessEqual(report["measured_peak_bytes"], int(cap))
        self.assertGreater(report["measured_peak_bytes"], 0.9 * int(cap))
        self.assertEqual(report["budget_bytes"], int(cap))
        steps = [rescue["step"] for rescue in report["rescues"]]
        self.assertEqual(steps, sorted(set(steps)))
        self.assertGreater(len(steps), 3)
        for rescue in report["rescues"]:
            self.assertTrue(rescue["op"].startswith("aten::"), rescue)
            self.assertEqual(rescue["refused"], 0)
            for figure in ("allocations", "bytes", "freed_bytes", "evicted"):
                self.assertGreater(rescue[figure], 0, rescue)
        self.assertLessEqual(sum(rescue["evicted"] for rescue in report["rescues"]), report["evictions"])
        # The smaller batch (step 6) fits by itself: nothing is done there.
        self.assertNotIn(6, steps)
        self.assertEqual(report["modes"], {"plan": 0, "dtr": report["steps"] - report["modes"]["none"], "mimose": 0,
                                           "none": report["modes"]["none"]})
        self.assertGreaterEqual(report["modes"]["none"], 1)
        first = report["rescues"][0]
        self.assertIn(f"an allocation failed in step {first['step']}: {first['op']} asked for ", done.stderr)
        self.assertEqual(done.stderr.count("an allocation failed in step"), 1)
        self.assertIn("  rescued         ", done.stderr)
        with open(progress) as lines:
            told = [event.get("rescue") for event in map(json.loads, lines) if event["event"] == "step"]
        self.assertEqual([rescue for rescue in told if rescue], report["rescues"])

    def test_nothing_fails(self):
        script, plain, peak = self.alone(train_test.MASKED)
        done, report = self.train(script, "--on-oom")
        self.assertEqual((done.returncode, done.stdout), (0, plain), done.stderr)
        self.assertEqual((report["rescues"], report["evictions"], report["recomputed_ops"]), ([], 0, 0))
        self.assertEqual(report["modes"], {"plan": 0, "dtr": 0, "mimose": 0, "none": report["steps"]})
        self.assertEqual((report["measured_peak_bytes"], report["budget_bytes"]), (peak, None))

    def test_a_machine_that_has_no_more(self):
        script = self.script(SMALL_MACHINE)
        plain = self.run_it(self.python, script)
        room = next(str(room << 20) for room in (64, 48, 32, 24, 16)
                    if self.run_it(self.python, script, str(room << 20)).returncode)
        done, report = self.train(script, "--on-oom", after=(room,))
        self.assertEqual((done.returncode, done.stdout), (0, plain.stdout), done.stderr)
        self.assertGreater(len(report["rescues"]), 0, done.stderr)

    def test_what_cannot_be_met(self):
        script, _, peak = self.alone(train_test.DEEP)
        done, report = self.train(script, "--on-oom", "--cap", str(peak // 5))
        self.assertEqual(done.returncode, 1, done.stderr)  # as the program itself
        self.assertEqual(report["exit_status"], 1)
        self.assertIn("allocate memory", done.stderr)  # the framework's own error
        self.assertIn("nothing more can be evicted", done.stderr)
        self.assertEqual([rescue["refused"] for rescue in report["rescues"]], [1])

    def test_usage(self):
        for options, said in ((("s.hws", "p.json", "--on-oom"), "--on-oom and a plan at once"),
                              (("--on-oom", "--planner", "checkmate"), "only heuristics of DTR"),
                              (("--on-oom", "--planner", "best"), "there is no planner 'best'")):
            done = subprocess.run([HIGHWATER, "train", *options, "--", self.python, "x.py"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(said, done.stderr)


@needs_torch2
class RescueWithTorch2(Rescue):
    python = TORCH2
    cap = 0.85


if __name__ == "__main__":
    unittest.main()
