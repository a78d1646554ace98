#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Programs that train under DTR, and its simulation given the log of what came to it: both evict the same storages in
the same order."""
import json
import os
import subprocess
import unittest
import unittest.mock

import nightly
import train_test
from budget_test import DYNAMIC
from sessions import InFolder
from train_test import HIGHWATER

TRAINING = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "training")


def around(log, number, stretch):
    """The log's lines about the first eviction of a stretch that the simulation chose otherwise."""
    pairs = list(zip(stretch["replayed"], stretch["live"]))
    same = next((k for k, (a, b) in enumerate(pairs) if a != b), len(pairs))
    with open(log) as file:
        lines = file.read().split("\nstretch ")[number + 1].splitlines()
    evictions = [i for i, line in enumerate(lines) if line.startswith("evict ")]
    return lines[evictions[max(0, same - 3)]:evictions[min(same + 3, len(evictions) - 1)]] if evictions else []


class Replay(InFolder):
    python = "/usr/bin/python3"
    run_it = train_test.Train.run_it

    def train(self, command, *options, **variables):
        report = os.path.join(self.folder, "report.json")
        with unittest.mock.patch.dict(os.environ, variables):
            done = self.run_it(HIGHWATER, "train", *options, "--report", report, "--", self.python, *command)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(report) as file:
            return json.load(file)

    def check(self, ratio, *command):
        peak = self.train(command)["measured_peak_bytes"]
        for heuristic in ("eqclass", "lru", "full"):
            with self.subTest(heuristic):
                log = os.path.join(self.folder, heuristic)
                report = self.train(command, "--budget", str(int(ratio * peak)), "--planner", "dtr:" + heuristic,
                                    HIGHWATER_DTR_LOG=log)
                replay = subprocess.run([HIGHWATER, "replay-dtr", log], capture_output=True, text=True)
                self.assertEqual(replay.returncode, 0, replay.stderr)
                stretches = json.loads(replay.stdout)
                for number, stretch in enumerate(stretches):
                    self.assertEqual(stretch["stopped"], "", number)
                    alike = stretch["replayed"] == stretch["live"]
                    self.assertEqual(stretch["replayed"], stretch["live"], alike or (number, around(log, number, stretch)))
                evicted = sum(len(stretch["live"]) for stretch in stretches)
                self.assertGreaterEqual(evicted, report["evictions"])
                self.assertGreater(evicted, 40)
                self.assertGreater(report["recomputed_ops"], 0)

    @nightly.nightly
    def test_gpt(self):
        self.check(0.7, os.path.join(TRAINING, "gpt.py"))

    @nightly.nightly
    def test_unet(self):
        self.check(0.7, os.path.join(TRAINING, "unet.py"), "--batch", "2")

    def test_lstm(self):
        self.check(0.8, os.path.join(TRAINING, "lstm.py"))

    def test_no_two_steps_alike(self):
        self.check(0.75, self.script(DYNAMIC))


if __name__ == "__main__":
    nightly.main()
