#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Implementations measured on a recorded step, chosen by monet and run: no byte different, peaks as predicted."""
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import unittest

BIN = os.environ.get("HIGHWATER_BIN", "build/release/bin")
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HIGHWATER = os.path.join(BIN, "highwater")
EXACT = {"per-sample", "in-place", "mask", "indices-only"}


def skip(why):
    print("skipped:", why)
    sys.exit(77)


class Implementations(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.session = os.path.join(cls.folder.name, "unet.hws")
        cls.path = os.path.join(cls.folder.name, "u.plan.json")
        cls.run_command("record", "-o", cls.session, "--steps", "2", "--", sys.executable,
                   os.path.join(ROOT, "training", "unet.py"), "--steps", "3", "--batch", "4", "--size", "96")
        cls.measured = cls.answer("run", cls.session, "--implementations", "exact", "--repeat", "1")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def run_command(cls, *arguments, code=0):
        done = subprocess.run([HIGHWATER, *map(str, arguments)], capture_output=True, text=True, timeout=600)
        assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
        return done

    @classmethod
    def answer(cls, *arguments):
        return json.loads(cls.run_command(*arguments, "--json").stdout)

    def plan(self, *arguments, ratio=0.75):
        made = self.answer("plan", self.session, "--planner", "monet", "--ratio", ratio, "--work-limit", 2, "-o",
                           self.path, *arguments)
        with open(self.path) as file:
            return made, json.load(file)

    def assert_exact(self, report, planned):
        self.assertGreater(report["outputs_compared"], 100)
        self.assertEqual(report["outputs_different"], 0, report)
        self.assertEqual(report["outputs_nonfinite"], 0, report)
        self.assertEqual(report["fallbacks"], 0, report)
        self.assertEqual(report["predicted_peak_bytes"], planned["peak_bytes"])
        self.assertLess(abs(report["measured_peak_bytes"] - planned["peak_bytes"]), 0.001 * planned["peak_bytes"])

    def entries(self):
        """The session's menu: names by op, as indices."""
        with sqlite3.connect(self.session) as database:
            algorithms = database.execute("SELECT name, duration_ns, workspace_bytes FROM implementations").fetchall()
            [document] = database.execute("SELECT document FROM menus").fetchone()
        return algorithms, json.loads(document)["implementations"]

    def test_the_menu_has_what_was_measured(self):
        algorithms, others = self.entries()
        found = self.measured["implementations"]
        self.assertEqual(found["kept"], len(algorithms) + len(others))
        self.assertEqual(found["offered"], sum(found[key] for key in ("kept", "different", "dominated", "impossible")))
        self.assertEqual({name for name, _, _ in algorithms} | {one["name"] for one in others}, EXACT)
        self.assertTrue(all(time > 0 for _, time, _ in algorithms))
        self.assertTrue(all(one["time_ns"] > 0 for one in others))
        self.assertEqual(self.measured["outputs_different"], 0)

    def test_plans_run_as_predicted(self):
        chosen = 0  # what is worth while depends on what was measured
        for use in ("", "algorithms", "in-place", "intermediate", "output-activated"):
            with self.subTest(use):
                planned, plan = self.plan(*(("--use", use) if use else ()))
                report = self.answer("run", self.session, self.path, "--repeat", "1")
                self.assert_exact(report, planned)
                self.assertEqual(report["implementations_chosen"], len(plan["implementations"]))
                self.assertEqual(report["compared_with"], "captured implementations")
                chosen += len(plan["implementations"])
        self.assertGreater(chosen, 0)

    def test_steps_in_a_row_and_a_layout(self):
        planned, plan = self.plan("--layout")
        self.assertGreater(len(plan["implementations"]), 0)
        self.assertEqual(plan["layout"]["arena_bytes"], planned["arena_bytes"])
        report = self.answer("run", self.session, self.path, "--repeat", "1", "--steps", "3")
        self.assert_exact(report, planned)
        # Packed again, and saying so, where oneDNN allocates otherwise than when it was measured.
        if not any("packed again" in note for note in report["notes"]):
            self.assertEqual(report["arena_bytes"], planned["arena_bytes"])
        training = report["training"]
        self.assertEqual((training["losses_different"], training["final_different"]), (0, 0))
        self.assertEqual(training["losses"], training["unplanned_losses"])

    def test_what_the_executor_does_not_have_is_refused(self):
        _, plan = self.plan()
        op, name = next(iter(plan["implementations"].items()))
        menu = json.loads(plan["options"]["menu"])
        for one in menu["implementations"]:
            if str(one["op"]) == op:
                one["name"] = "fft"
        plan["implementations"][op] = "fft"
        plan["options"]["menu"] = json.dumps(menu)
        with open(self.path, "w") as file:
            json.dump(plan, file)
        refused = self.run_command("run", self.session, self.path, code=4)
        self.assertIn(f"op {op} ", refused.stderr)
        self.assertIn("as 'fft'", refused.stderr)
        self.assertIn("hint: ", refused.stderr)
        self.assertNotEqual(name, "fft")

    def test_usage(self):
        self.run_command("run", self.session, "--implementations", "magic", code=2)
        self.plan()
        self.run_command("run", self.session, self.path, "--implementations", "exact", code=2)

    def test_other_sums_are_compared_with_themselves(self):
        session = os.path.join(self.folder.name, "all.hws")
        with open(self.session, "rb") as one, open(session, "wb") as other:
            other.write(one.read())
        self.answer("run", session, "--implementations", "all", "--repeat", "1")
        with sqlite3.connect(session) as database:  # so that monet wants them
            changed = database.execute("UPDATE implementations SET duration_ns = 1, workspace_bytes = 0"
                                       " WHERE name IN ('im2col', 'onednn')").rowcount
            database.execute("DELETE FROM implementations WHERE name = 'per-sample'")
            database.commit()
        if changed == 0:
            self.skipTest("no convolution gains anything by other sums here")
        self.answer("plan", session, "--planner", "monet", "--ratio", 0.9, "--use", "algorithms", "--work-limit", 1,
                    "-o", self.path)
        report = self.answer("run", session, self.path, "--repeat", "1", "--steps", "2")
        self.assertGreater(report["implementations_chosen"], 0)
        self.assertEqual(report["compared_with"], "the same implementations, unplanned")
        self.assertEqual(report["outputs_different"], 0)
        self.assertEqual(report["training"]["final_different"], 0)


if __name__ == "__main__":
    if not os.path.exists(HIGHWATER + "-exec"):
        skip("no highwater-exec; build it where libtorch is installed (scripts/setup)")
    unittest.main()
