#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A training that runs already goes within a budget, nothing recorded before, and leaves it again."""
import json
import os
import unittest

import apply_test
from apply_test import TIMES
from torch2 import TORCH2, needs_torch2
from train_test import HIGHWATER


class ApplyBudget(apply_test.Running):
    ratio = 0.75  # of the peak
    steps = max(28, apply_test.Running.steps)

    def prepare(self):
        """The peak of the steps once its optimizer has its states."""
        report = os.path.join(self.folder, "alone.json")
        done = self.run_it(HIGHWATER, "train", "--report", report, "--", self.python, self.source, self.go, "4")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(report) as file:
            self.peak = max(json.load(file)["step_peaks_bytes"])

    def come_and_go(self, step, *options, acts="the budget"):
        """It comes where the program waits, after `step`, and goes four steps later."""
        report = os.path.join(self.folder, f"report{step}.json")
        starter = self.apply(*options, "--report", report, acts=acts + " acts")
        self.let(step)
        self.until(step + 4)
        told = self.release(starter, "leaves " + acts, step + 4)
        with open(report) as file:
            return json.load(file), told

    def test_it_comes_and_goes(self):
        self.until(3)
        budget = int(self.ratio * self.peak)
        for time_around in range(TIMES):
            figures, told = self.come_and_go(8 * time_around + 3, "--budget", str(budget), "--planner", "dtr:eqclass")
            # The first step begins where an optimizer has made its own.
            self.assertGreaterEqual(figures["modes"]["dtr"], 2, told)
            self.assertEqual(figures["modes"]["dtr"], figures["steps"])
            self.assertEqual(figures["budget_bytes"], budget)
            self.assertLessEqual(max(figures["step_peaks_bytes"]), budget)
            self.assertGreater(min(figures["step_peaks_bytes"]), 0.9 * budget)
            self.assertGreater(figures["recomputed_ops"], 0)
            self.until(8 * time_around + 11)
        self.finished()

    def test_what_was_there_before_counts(self):
        self.until(3)
        figures, told = self.come_and_go(3, "--budget", str(10 * self.peak))
        self.assertEqual(figures["evictions"], 0, told)
        self.until(11)
        for peak in figures["step_peaks_bytes"]:
            self.assertLess(abs(peak - self.peak), self.peak / 100)
        figures, told = self.come_and_go(11, "--on-oom", acts="the rescue")
        self.assertEqual(figures["modes"]["none"], figures["steps"], told)
        self.assertEqual(figures["rescues"], [])
        self.until(19)
        # What ran before there was a budget is never ended by it.
        figures, told = self.come_and_go(19, "--budget", str(self.peak // 4))
        self.assertIn("went above the budget", told)
        self.assertGreater(min(figures["step_peaks_bytes"]), self.peak // 4)
        self.assertGreater(figures["evictions"], 0)
        self.finished()

    def test_usage(self):
        pid = str(self.program.pid)
        for words, said in (((), "nothing to apply"), ((self.session, "p.json", "--budget", "1GB"), "at once"),
                            ((self.session,), "a plan is needed"), (("--budget", "much"), "much")):
            done = self.run_it(HIGHWATER, "apply", pid, *words)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(said, done.stderr)


@needs_torch2
class ApplyBudgetTorch2(ApplyBudget):
    python = TORCH2
    ratio = 0.85
    test_usage = None


if __name__ == "__main__":
    unittest.main()
