#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A plan comes into a training that runs already, and goes again: the lines stay those of the program alone.

HIGHWATER_APPLIES: how often it comes and goes, and how often whoever brought it is killed (default: twice each).
"""
import json
import os
import signal
import subprocess
import time
import unittest

import train_test
from sessions import InFolder, once
from torch2 import TORCH2, needs_torch2
from train_test import HIGHWATER

TIMES = int(os.environ.get("HIGHWATER_APPLIES", "2"))
# After every fourth step it waits for a file.
PROGRAM = train_test.DEEP.replace("step in range(8)", "step in range(int(sys.argv[2]))").replace("if step == 6", "if step < 0").replace(
    "if step == 4:", "if step < 0:").replace("import hashlib, torch", "import hashlib, os, sys, time, torch").replace(
    """        print("step", step, loss.item().hex())
""", """        print("step", step, loss.item().hex(), flush=True)
        while step % 4 == 3 and not os.path.exists(sys.argv[1] + str(step)): time.sleep(0.01)
""")


class Running(InFolder):
    """A training that waits every fourth step, and what it prints alone."""
    python = "/usr/bin/python3"
    run_it = train_test.Train.run_it
    steps = 4 + 8 * TIMES

    def setUp(self):
        super().setUp()
        self.go = os.path.join(self.folder, "go")
        self.source = self.script(PROGRAM)
        self.let_all()
        self.alone = once((self.python, self.steps), self.run_alone)
        self.prepare()
        for step in range(3, self.steps, 4):
            os.remove(self.go + str(step))
        self.program = subprocess.Popen([self.python, self.source, self.go, str(self.steps)], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, self.program)
        self.lines = []

    @staticmethod
    def end(process):
        process.kill()
        process.communicate()

    def run_alone(self):
        alone = self.run_it(self.python, self.source, self.go, str(self.steps))
        self.assertEqual(alone.returncode, 0, alone.stderr)
        return alone.stdout

    def let_all(self):
        for step in range(3, self.steps, 4):
            self.let(step)

    def let(self, step):
        with open(self.go + str(step), "w"):
            pass

    def until(self, step):
        """The program waits after this step."""
        while not self.lines or not self.lines[-1].startswith(f"step {step} "):
            line = self.program.stdout.readline()
            self.assertTrue(line, self.lines)
            self.lines.append(line)

    def apply(self, *what, acts="the plan acts"):
        starter = subprocess.Popen([HIGHWATER, "apply", str(self.program.pid), *what], stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, starter)
        said = []
        while not said or acts not in said[-1]:
            said.append(starter.stderr.readline())
            self.assertTrue(said[-1], said)
        return starter

    def release(self, starter, leaves, step):
        """It leaves at the end of the step that begins where the program waits now."""
        released = subprocess.Popen([HIGHWATER, "release", str(self.program.pid)], stderr=subprocess.PIPE, text=True)
        line = starter.stderr.readline()
        while leaves not in line:
            self.assertTrue(line)
            line = starter.stderr.readline()
        time.sleep(0.3)
        self.let(step)
        _, told = released.communicate(timeout=60)
        self.assertEqual(released.returncode, 0, told)
        _, told = starter.communicate(timeout=60)
        self.assertEqual(starter.returncode, 0, told)
        return told

    def finished(self):
        self.let_all()
        rest, errors = self.program.communicate(timeout=300)
        self.assertEqual(self.program.returncode, 0, errors)
        self.assertEqual("".join(self.lines) + rest, self.alone)


class Apply(Running):
    ratio = 0.75

    def prepare(self):
        recorded = self.run_it(HIGHWATER, "record", "-o", self.session, "--steps", "3", "--", self.python, self.source, self.go, "4")
        self.assertEqual(recorded.returncode, 0, recorded.stderr)
        self.plan = os.path.join(self.folder, "p.plan.json")
        made = self.run_it(HIGHWATER, "plan", self.session, "--planner", "highwater", "--ratio", str(self.ratio), "-o", self.plan, "--time-limit", "1", "--json")
        self.assertEqual(made.returncode, 0, made.stderr)
        self.predicted = json.loads(made.stdout)["peak_bytes"]

    def test_it_comes_and_goes(self):
        self.until(3)
        for time_around in range(TIMES):
            report = os.path.join(self.folder, f"report{time_around}.json")
            starter = self.apply(self.session, self.plan, "--report", report)
            self.let(8 * time_around + 3)
            self.until(8 * time_around + 7)
            told = self.release(starter, "leaves the plan", 8 * time_around + 7)
            with open(report) as file:
                figures = json.load(file)
            # The first whole step begins where an optimizer has made its own.
            self.assertGreaterEqual(figures["steps_planned"], 2, told)
            self.assertGreater(figures["recomputed_ops"], 0)
            self.assertLess(abs(figures["measured_peak_bytes"] - self.predicted), max(65536, self.predicted // 1000))
            self.until(8 * time_around + 11)
        self.finished()

    def test_whoever_brought_it_is_killed(self):
        self.until(3)
        for time_around in range(TIMES):
            starter = self.apply(self.session, self.plan)
            self.let(8 * time_around + 3)
            self.until(8 * time_around + 7)
            starter.send_signal(signal.SIGKILL)
            starter.wait()
            self.let(8 * time_around + 7)
            self.until(8 * time_around + 11)
        self.finished()

    def test_nothing_to_release(self):
        done = self.run_it(HIGHWATER, "release", str(self.program.pid))
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn("no plan acts in", done.stderr)


@needs_torch2
class ApplyTorch2(Apply):
    python = TORCH2
    ratio = 0.85
    test_nothing_to_release = None  # the framework has no part in it


if __name__ == "__main__":
    unittest.main()
