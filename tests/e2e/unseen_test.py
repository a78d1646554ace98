#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What no op shows, in programs that train under a plan and within a budget: the lines of the program alone. With a guard
switched off, verification ends the program at the op, and it trains when it starts again."""
import json
import os
import subprocess

import nightly
from sessions import InFolder
from torch2 import TORCH2, needs_torch2
from train_test import HIGHWATER
from unseen_programs import COMPILED, FILLED, PROGRAMS, REFILLED, SETTINGS, UNORDERED


class Unseen(InFolder):
    python = "/usr/bin/python3"

    def setUp(self):
        super().setUp()
        self.environment = {**os.environ, "OMP_NUM_THREADS": "1", "XDG_CACHE_HOME": os.path.join(self.folder, "cache")}
        captures = os.path.expanduser(os.path.join(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "highwater", "capture"))
        os.makedirs(os.path.join(self.folder, "cache", "highwater"))
        if os.path.isdir(captures):
            os.symlink(captures, os.path.join(self.folder, "cache", "highwater", "capture"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_program(self, *command, **variables):
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, env={**self.environment, **variables},
                              check=False)
        return done.returncode, done.stdout, done.stderr

    def train(self, script, *arguments, after=(), **variables):
        report = os.path.join(self.folder, "report.json")
        status, lines, errors = self.run_program(HIGHWATER, "train", *arguments, "--report", report, "--", self.python,
                                                 script, *after, **variables)
        with open(report, encoding="utf-8") as file:
            return status, lines, errors, json.load(file)

    def check(self, programs, shares, planners):
        """Each within budgets (shares of its peak) and under plans has the lines of the program alone."""
        for name, text in programs.items():
            script = self.script(text, name)
            status, alone, errors = self.run_program(self.python, script)
            self.assertEqual(status, 0, errors)
            session = self.path(name + ".hws")
            recorded = self.run_program(HIGHWATER, "record", "-o", session, "--", self.python, script)[1]
            self.assertEqual(recorded, alone, name)
            peak = json.loads(self.run_program(HIGHWATER, "info", session, "--json")[1])["baseline"]["peak_bytes"]
            for share in shares:
                with self.subTest(program=name, budget=share):
                    self.check_budget(script, alone, int(peak * share))
            for planner in planners:
                with self.subTest(program=name, planner=planner):
                    self.check_plan(script, alone, session, planner)

    def check_budget(self, script, alone, budget):
        status, lines, errors, report = self.train(script, "--budget", str(budget))
        if status == 3:
            return  # said, and nothing computed
        self.assertEqual((status, lines), (0, alone), errors)
        self.assertEqual(report["mismatches"], [])
        self.assertGreater(report["verified_bytes"], 0)

    def check_plan(self, script, alone, session, planner):
        plan = self.path("p.json")
        status, _, errors = self.run_program(HIGHWATER, "plan", session, "--planner", planner, "--ratio", "0.8",
                                             "--time-limit", "3", "-o", plan)
        if status == 3:
            return
        self.assertEqual(status, 0, errors)
        status, lines, errors, report = self.train(script, session, plan)
        self.assertEqual((status, lines), (0, alone), errors)
        self.assertEqual(report["mismatches"], [])

    HALVES = [dict(list(PROGRAMS.items())[half::2]) for half in range(2)]

    def test_every_line_is_the_one_of_the_program_alone(self):
        self.check(self.HALVES[0], (0.7,), ())

    @nightly.nightly
    def test_every_line_is_so_within_all_budgets_and_by_other_planners(self):
        self.check(self.HALVES[0], (0.8, 0.6), ("dtr:eqclass", "highwater"))
        self.check(self.HALVES[1], (0.8, 0.7, 0.6), ("dtr:eqclass", "highwater"))

    @needs_torch2
    def test_a_compiler_finds_nothing_of_ours(self):
        self.python = TORCH2
        self.check({"compiled.py": COMPILED}, (0.8,), ())

    @needs_torch2
    def test_a_program_that_compiles_nothing_has_no_gap(self):
        session = self.path("s.hws")
        self.run_program(HIGHWATER, "record", "-o", session, "--", TORCH2, self.script(FILLED, "filled.py"))
        self.assertEqual(json.loads(self.run_program(HIGHWATER, "info", session, "--json")[1])["gaps"], [])

    def test_without_a_guard_verification_ends_the_program_and_its_next_start_trains(self):
        script = self.script(SETTINGS, "settings.py")
        alone = self.run_program("/usr/bin/python3", script)[1]
        session, plan = self.path("s.hws"), self.path("p.json")
        self.run_program(HIGHWATER, "record", "-o", session, "--", "/usr/bin/python3", script)
        status, _, errors = self.run_program(HIGHWATER, "plan", session, "--planner", "dtr:eqclass", "--ratio", "0.8", "-o",
                                             plan)
        self.assertEqual(status, 0, errors)
        ended = 0
        for _ in range(8):  # one op after the other is found to differ, and kept
            status, lines, errors, report = self.train(script, session, plan, "--verify", "full",
                                                       HIGHWATER_LIVE_WITHOUT="settings")
            if status == 0:
                break
            ended += 1
            self.assertEqual(status, 6, errors)
            self.assertTrue(alone.startswith(lines), lines)
            self.assertIn("highwater: error: op ", errors)
            (mismatch,) = report["mismatches"]
            self.assertEqual(set(mismatch), {"op", "name", "layer", "line", "bytes", "kind"})
            self.assertIn(mismatch["name"].split(".")[0], ("aten::exp", "aten::mul"))
            self.assertIn("settings.py", mismatch["line"])
        self.assertEqual((status, lines), (0, alone), errors)
        self.assertGreater(ended, 0)

    def test_within_a_budget_a_mismatch_has_its_line(self):
        script = self.script(REFILLED, "refilled.py")
        peak = self.train(script, "--budget", "100GB")[3]["measured_peak_bytes"]
        status, _, errors, report = self.train(script, "--budget", str(int(0.6 * peak)), "--verify", "full",
                                               HIGHWATER_LIVE_WITHOUT="exposures")
        self.assertEqual(status, 6, errors)
        (mismatch,) = report["mismatches"]
        with open(script, encoding="utf-8") as file:
            line = file.read().splitlines().index(
                "        loss = loss + layer(batch / 2).pow(2).mean()") + 1
        self.assertEqual(mismatch["line"], f"refilled.py:{line}", mismatch)

    def test_what_is_not_deterministic_is_kept_or_not_compared(self):
        script = self.script(UNORDERED, "unordered.py")
        peak = self.train(script, "--budget", "100GB")[3]["measured_peak_bytes"]
        for after, varies in ((), True), (("deterministic",), False):
            with self.subTest(after=after):
                status, _, errors, report = self.train(script, "--budget", str(int(0.6 * peak)), "--verify", "full",
                                                       after=after)
                self.assertEqual(status, 0, errors)
                self.assertEqual(report["mismatches"], [])
                self.assertEqual(report["uncompared_ops"] > 0, varies)
                self.assertEqual("aten::index_put is not deterministic" in str(report["notes"]), varies)
                self.assertEqual("ops run again that are not deterministic" in errors, varies)

    def test_a_word_that_verify_does_not_know_is_refused(self):
        status, _, errors = self.run_program(HIGHWATER, "train", "--budget", "1GB", "--verify", "some", "--", "true")
        self.assertEqual(status, 2)
        self.assertIn("full, sampled or off", errors)
        status, _, errors = self.run_program(HIGHWATER, "train", "--verify", "full", "--", "true")
        self.assertEqual(status, 2)
        self.assertIn("--verify has nothing to compare", errors)


if __name__ == "__main__":
    nightly.main()
