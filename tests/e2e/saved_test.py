#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Saved means saved: what could not be written is an error, and nothing half-written takes its place."""
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import unittest

from sessions import HIGHWATER, InFolder, run

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SAMPLE = os.path.join(ROOT, "sessions", "transformer.hws")
TRAINING = """
    import sys, torch
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(int(sys.argv[1])):
        model(torch.randn(4, 8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    print("trained")
"""


def no_room():
    """In the child: no file grows beyond a kilobyte, as on a disk that is full."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))


class Saved(InFolder):
    def steps(self):
        """That are recorded by now."""
        try:
            with sqlite3.connect(f"file:{self.session}?mode=ro", uri=True) as database:
                return database.execute("SELECT count(*) FROM steps").fetchone()[0]
        except sqlite3.Error:
            return 0

    def without_room(self, *command):
        return subprocess.run([HIGHWATER, *command], capture_output=True, text=True, timeout=600, preexec_fn=no_room,
                              env={**os.environ, "QT_QPA_PLATFORM": "offscreen"})

    def test_pictures_reports_and_exports_without_room(self):
        outputs = [("shot", "--view", "timeline", "-o", "x.svg"), ("shot", "--view", "timeline", "-o", "x.pdf"),
                   ("shot", "--view", "timeline", "-o", "x.png"), ("report", "-o", "x.html"), ("report", "-o", "x2.pdf"),
                   ("export", "--to", "perfetto", "-o", "x.pftrace"), ("export", "--to", "csv", "-o", "csv")]
        for name, *options in outputs:
            file = os.path.join(self.folder, options[-1])
            done = self.without_room(name, SAMPLE, *options[:-1], file)
            self.assertEqual(done.returncode, 1, (name, options, done.stderr))
            self.assertRegex(done.stderr, "highwater: error: cannot write .*\nhint: make room")
            self.assertFalse([left for left in os.listdir(self.folder) if left.startswith(options[-1]) and
                              os.path.isfile(os.path.join(self.folder, left))], options)

    def test_a_plan_without_room_is_not_there(self):
        file = os.path.join(self.folder, "p.plan.json")
        done = self.without_room("plan", SAMPLE, "--planner", "chen-greedy", "--ratio", "0.8", "-o", file)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(os.listdir(self.folder), [])

    def test_tables_without_room_are_not_there(self):
        done = self.without_room("export", SAMPLE, "--to", "csv", "-o", os.path.join(self.folder, "tables"))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_session_without_room_is_not_there(self):
        done = self.without_room("import", "-o", self.session, SAMPLE)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, "error: cannot create .*\nhint: make room")
        self.assertEqual(os.listdir(self.folder), [])

    def test_the_training_goes_on_where_its_recorder_has_no_room(self):
        training = self.script(TRAINING)
        done = self.without_room("record", "-o", self.session, "--", sys.executable, training, "2")
        self.assertEqual((done.returncode, done.stdout), (5, "trained\n"), done.stderr)
        self.assertEqual(os.listdir(self.folder), [os.path.basename(training)])

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_a_report_without_room(self):
        for option, what in (("--report", "cannot write '/dev/full'"), ("--progress", "'/dev/full' is not complete")):
            with self.subTest(option=option):
                done = subprocess.run([HIGHWATER, "train", "--budget", "1GB", option, "/dev/full", "--", "/usr/bin/python3",
                                       self.script(TRAINING), "2"], capture_output=True, text=True, timeout=100)
                self.assertEqual((done.returncode, done.stdout), (1, "trained\n"), done.stderr)
                self.assertIn("error: " + what, done.stderr)

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_standard_output_without_room(self):
        for command in (["info", SAMPLE], ["info", SAMPLE, "--json"], ["info", SAMPLE, "--by", "layer"],
                        ["sweep", SAMPLE, "--planners", "chen-greedy", "--ratios", "0.9"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([HIGHWATER, *command], stdout=full, stderr=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, 1, command)
            self.assertIn("standard output could not be written", done.stderr)

    def test_a_session_that_was_removed_while_it_was_recorded(self):
        training = self.script(TRAINING)
        recording = subprocess.Popen([HIGHWATER, "record", "-o", self.session, "--steps", "400", "--", sys.executable,
                                      training, "400"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while recording.poll() is None and not self.steps():
            time.sleep(0.01)
        os.remove(self.session)
        out, errors = recording.communicate(timeout=300)
        self.assertEqual(recording.returncode, 1, errors)
        self.assertIn("was removed or replaced while it was written: nothing of it is saved", errors)
        self.assertIn("trained", out)  # the training is not harmed

    def test_numbers_that_are_none(self):
        for ratio in ("nan", "inf", "1e300", "0", "-1"):
            for command in (["plan", SAMPLE, "--planner", "chen-greedy", "--ratio", ratio],
                            ["sweep", SAMPLE, "--planners", "chen-greedy", "--ratios", ratio],
                            ["plan", SAMPLE, "--planner", "highwater", "--ratio", "0.9", "--time-limit", ratio]):
                if command[-2:] == ["--time-limit", "1e300"] or ratio in ("0",) and "--time-limit" in command:
                    continue
                code, _, errors = run(*command)
                self.assertEqual(code, 2, (command, errors))

    def test_a_folder_for_temporary_files_that_is_not_there(self):
        environment = {**os.environ, "TMPDIR": "/nowhere"}
        done = subprocess.run([HIGHWATER, "record", "-o", self.session, "--steps", "1", "--", sys.executable,
                               self.script(TRAINING), "3"], capture_output=True, text=True, timeout=300, env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(os.path.exists(self.session))

    def test_names_do_not_reach_the_terminal_as_commands(self):
        shutil.copy(SAMPLE, self.session)
        with sqlite3.connect(self.session) as database:
            database.execute("UPDATE layers SET path = char(27) || ']0;x' || char(7) || id")
        for command in (["info", self.session, "--by", "layer"], ["info", self.session]):
            code, out, errors = run(*command)
            self.assertEqual(code, 0, errors)
            self.assertNotIn("\x1b", out + errors)


if __name__ == "__main__":
    unittest.main()
