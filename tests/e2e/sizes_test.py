#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A training with several input sizes, each run natively under the plan that Mimose chooses for it."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

from sessions import BIN, run, skip

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class SizesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.varying, cls.steady = (os.path.join(cls.folder.name, name + ".hws") for name in ("varying", "steady"))
        for session, script, steps in ((cls.varying, "varying_transformer.py", 6), (cls.steady, "transformer.py", 1)):
            code, _, errors = run("record", "-o", session, "--steps", steps, "--warmup", 1, "--", sys.executable,
                                  os.path.join(ROOT, "training", script), "--steps", steps + 2)
            assert code == 0, errors

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def sizes(self, *arguments):
        code, out, errors = run("run", self.varying, "--planner", "mimose", "--repeat", 1, "--json", *arguments)
        return code, json.loads(out), errors

    def test_each_size_under_its_plan(self):
        code, report, errors = self.sizes("--ratio", "0.7")
        self.assertEqual(code, 0, errors)
        rows = report["rows"]
        self.assertGreaterEqual(len(rows), 3)
        self.assertEqual(rows, sorted(rows, key=lambda row: row["input_bytes"]))
        self.assertLessEqual(report["plans"], len(rows))
        for row in rows:
            with self.subTest(row["step"]):
                self.assertTrue(row["within_budget"])
                self.assertGreater(row["outputs_compared"], 100)
                self.assertEqual((row["outputs_different"], row["outputs_nonfinite"], row["fallbacks"]), (0, 0, 0))
                self.assertLess(abs(row["measured_peak_bytes"] - row["predicted_peak_bytes"]),
                                0.001 * row["predicted_peak_bytes"])
                self.assertLessEqual(row["measured_peak_bytes"], 1.001 * report["budget_bytes"])
        self.assertEqual(rows[0]["layers_dropped"], [], "the smallest fits as it is")
        self.assertIn("blocks.", rows[-1]["layers_dropped"][0])
        self.assertLess(rows[-1]["measured_peak_bytes"], rows[-1]["baseline_peak_bytes"])

        code, out, errors = run("run", self.varying, "--planner", "mimose", "--repeat", 1, "--budget",
                                report["budget_bytes"])
        self.assertEqual(code, 0, errors)
        self.assertEqual(len(out.strip().splitlines()), 3 + len(rows))

    def test_sizes_that_do_not_fit(self):
        code, report, errors = self.sizes("--ratio", "0.2")
        self.assertEqual(code, 3, errors)
        self.assertRegex(errors, "highwater: error: .*every input size\nhint: ")
        self.assertEqual(report["rows"][-1]["status"], "infeasible")
        self.assertNotIn("measured_peak_bytes", report["rows"][-1])

    def test_errors(self):
        for session, arguments, expected in ((self.steady, ("--planner", "mimose", "--ratio", "0.7"), 4),
                                             (self.varying, ("--planner", "mimose"), 2),
                                             (self.varying, ("--planner", "mimose", "--ratio", "0"), 2),
                                             (self.varying, ("--planner", "echo", "--ratio", "0.7"), 2),
                                             (self.varying, ("--ratio", "0.7"), 2),
                                             (self.varying, ("--planner", "mimose", "--ratio", "1", "--steps", 2), 2)):
            with self.subTest(arguments):
                code, out, errors = run("run", session, *arguments)
                self.assertEqual((code, out), (expected, ""), errors)
                self.assertRegex(errors, "highwater: error: .*\nhint: ")


if __name__ == "__main__":
    if not os.access(os.path.join(BIN, "highwater-exec"), os.X_OK):
        skip("highwater-exec is not built (install libtorch with scripts/setup, then build)")
    if subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode != 0:
        skip("torch is not installed (scripts/setup)")
    unittest.main()
