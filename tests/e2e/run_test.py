#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Records real training steps, plans them and runs the plans natively: peaks as predicted, no byte different."""
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

BIN = os.environ.get("HIGHWATER_BIN", "build/release/bin")
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HIGHWATER, EXECUTOR = os.path.join(BIN, "highwater"), os.path.join(BIN, "highwater-exec")


def skip(why):
    print("skipped:", why)
    sys.exit(77)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout, done.stderr


class RunTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.sessions = {}
        for model in ("resnet", "transformer", "lstm"):
            session = os.path.join(cls.folder, model + ".hws")
            code, _, errors = run(HIGHWATER, "record", "-o", session, "--steps", "2", "--json", "--", sys.executable,
                                  os.path.join(ROOT, "training", model + ".py"), "--steps", "3")
            assert code == 0, errors
            cls.sessions[model] = session

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def execute(self, *arguments):
        code, out, errors = run(EXECUTOR, *arguments, "--json")
        self.assertEqual(code, 0, out + errors)
        return json.loads(out)

    def assert_exact(self, report):
        self.assertGreater(report["outputs_compared"], 100)
        self.assertEqual(report["outputs_different"], 0, report)
        self.assertEqual(report["outputs_nonfinite"], 0, report)
        self.assertEqual(report["fallbacks"], 0, report)
        difference = abs(report["measured_peak_bytes"] - report["predicted_peak_bytes"])
        self.assertLess(difference, 0.001 * report["predicted_peak_bytes"])
        self.assertGreaterEqual(report["arena_bytes"], report["arena_lower_bound_bytes"])

    def plan(self, model):
        """A dtr:eqclass plan at 60 % of the recorded peak."""
        path = os.path.join(self.folder, model + ".plan.json")
        code, out, errors = run(HIGHWATER, "plan", self.sessions[model], "--planner", "dtr:eqclass", "--ratio", "0.6",
                                "-o", path, "--json")
        self.assertEqual(code, 0, model + ": " + errors)
        return path, json.loads(out)

    def test_captured_order_then_plan(self):
        for model, session in self.sessions.items():
            with self.subTest(model):
                plan, planned = self.plan(model)
                self.assertGreater(planned["recomputed_ops"], 0)
                baseline = self.execute(session)
                self.assert_exact(baseline)
                report = self.execute(session, plan)
                self.assert_exact(report)
                self.assertEqual(report["predicted_peak_bytes"], planned["peak_bytes"])
                self.assertLess(report["measured_peak_bytes"], baseline["measured_peak_bytes"])

                database = sqlite3.connect(session)
                runs = database.execute("SELECT plan, measured_peak_bytes FROM runs ORDER BY id").fetchall()
                self.assertEqual(runs[-2:], [(None, baseline["measured_peak_bytes"]),
                                             (runs[-1][0], report["measured_peak_bytes"])])
                self.assertIsNotNone(runs[-1][0])
                self.assertGreater(database.execute("SELECT count(*) FROM signatures").fetchone()[0], 0)
                database.close()

    def test_errors(self):
        plan, _ = self.plan("transformer")
        code, out, errors = run(EXECUTOR, self.sessions["lstm"], plan, "--json")
        self.assertEqual((code, out), (4, ""))
        self.assertTrue(errors.startswith("highwater: error: "), errors)
        for arguments, expected in ((("missing.hws",), 4), ((plan,), 4), ((self.sessions["lstm"], "missing.json"), 4),
                                    ((self.sessions["lstm"], "--step", "99"), 4), ((), 2),
                                    ((self.sessions["lstm"], "--device", "abacus"), 2)):
            with self.subTest(arguments):
                code, out, errors = run(EXECUTOR, *arguments)
                self.assertEqual((code, out), (expected, ""))
                self.assertIn("highwater: error: ", errors)

    def test_what_cannot_be_replayed_is_named(self):
        session = os.path.join(self.folder, "opaque.hws")
        shutil.copy(self.sessions["transformer"], session)
        database = sqlite3.connect(session)
        database.execute("UPDATE ops SET args = '{\"a\":[{\"opaque\":\"Storage\"}],\"k\":{}}' WHERE name = 'aten::bmm'")
        database.commit()
        database.close()
        code, _, errors = run(EXECUTOR, session)
        self.assertEqual(code, 4, errors)
        self.assertIn("aten::bmm", errors)

    def test_a_broken_schedule_is_refused(self):
        plan, _ = self.plan("transformer")
        with open(plan) as file:
            document = json.load(file)
        document["schedule"] = [entry for entry in document["schedule"] if entry[0] != "r"]
        broken = os.path.join(self.folder, "broken.plan.json")
        with open(broken, "w") as file:
            json.dump(document, file)
        code, _, errors = run(EXECUTOR, self.sessions["transformer"], broken)
        self.assertEqual(code, 6, errors)


if __name__ == "__main__":
    if not os.access(EXECUTOR, os.X_OK):
        skip("highwater-exec is not built (install libtorch with scripts/setup, then build)")
    if run(sys.executable, "-c", "import torch, torchvision")[0] != 0:
        skip("torch and torchvision are not installed (scripts/setup)")
    unittest.main()
