#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`run` finds an executor for a session's torch: the ready one, one that it compiles once, or it says what is missing."""
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

import torch2
from sessions import BIN, HIGHWATER, skip

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SHARE = os.path.join(BIN, "..", "share", "highwater", "executor")
TRAINING = os.path.join(ROOT, "training", "transformer.py")
# Counts how often it is asked, and compiles nothing.
REFUSING = """#!/bin/sh
echo again >>"$(dirname "$0")/asked"
echo "train.h:1: error: no such thing" >&2
exit 1
"""


def run(*command, **environment):
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, env={**os.environ, **environment})
    return done.returncode, done.stdout, done.stderr


def record(python, session):
    code, _, errors = run(HIGHWATER, "record", "-o", session, "--steps", "1", "--", python, TRAINING, "--steps", "2",
                          "--batch", "2", "--width", "32")
    assert code == 0, errors


class ExecutorTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.session = os.path.join(cls.folder, "s.hws")
        record(sys.executable, cls.session)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def program(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, 0o755)
        return path

    def installed(self, folder):
        """Highwater without a ready executor, as a package without libtorch has it."""
        root = os.path.join(self.folder, folder)
        os.makedirs(os.path.join(root, "bin"))
        shutil.copy(HIGHWATER, os.path.join(root, "bin"))
        for part in ("lib", "share"):
            os.symlink(os.path.abspath(os.path.join(BIN, "..", part)), os.path.join(root, part))
        return os.path.join(root, "bin", "highwater")

    def unknown(self, name):
        """The session as of a machine whose torch is nowhere here."""
        path = shutil.copy(self.session, os.path.join(self.folder, name))
        with sqlite3.connect(path) as database:
            database.execute("UPDATE processes SET command = '/nowhere/bin/python3 train.py', framework_version = '9.8.7a0'")
            database.execute("UPDATE steps SET environment = json_set(environment, '$.torch_package', '/nowhere/torch')")
        return path

    def test_the_session_says_where_its_torch_lies(self):
        with sqlite3.connect(self.session) as database:
            environment = json.loads(database.execute("SELECT environment FROM steps").fetchone()[0])
        self.assertTrue(os.path.exists(os.path.join(environment["torch_package"], "version.py")), environment)

    def test_recording_says_how_ops_were_seen(self):
        for way in ("python", "native"):
            code, out, errors = run(HIGHWATER, "record", "--json", "-o", os.path.join(self.folder, way + ".hws"),
                                    "--steps", "1", "--", sys.executable, TRAINING, "--steps", "2", "--batch", "2",
                                    "--width", "32", HIGHWATER_CAPTURE=way)
            self.assertEqual(code, 0, errors)
            self.assertEqual(json.loads(out)["capture"], way)

    def test_a_compiler_that_refuses_is_asked_once(self):
        compiler = self.program("refusing/c++", REFUSING)
        environment = {"XDG_CACHE_HOME": os.path.join(self.folder, "refused"), "CXX": compiler}
        for reason in ("no such thing\nhint: ", "the compiler said so before; remove "):
            code, out, errors = run(HIGHWATER, "run", self.session, "--python", sys.executable, **environment)
            self.assertEqual((code, out), (5, ""), errors)
            self.assertRegex(errors, "highwater: error: .*no such thing")
            self.assertIn(reason, errors)
        with open(os.path.join(self.folder, "refusing", "asked")) as file:
            self.assertEqual(len(file.readlines()), 1)

    def test_no_compiler(self):
        code, _, errors = run(HIGHWATER, "run", self.session, "--python", sys.executable, CXX="/nowhere/c++",
                              XDG_CACHE_HOME=os.path.join(self.folder, "none"))
        self.assertEqual(code, 5, errors)
        self.assertRegex(errors, "highwater: error: .*no C\\+\\+ compiler.*\nhint: .*g\\+\\+")

    def test_no_torch_at_all(self):
        python = self.program("without/python3", "#!/bin/sh\necho\n")
        code, out, errors = run(self.installed("bare"), "run", self.unknown("bare.hws"), PATH=os.path.dirname(python))
        self.assertEqual((code, out), (5, ""), errors)
        self.assertRegex(errors, "highwater: error: .*torch 9.8.7a0.*\nhint: .*pip install torch==9.8.7[)].*--python")

    @unittest.skipUnless(os.path.exists(os.path.join(BIN, "highwater-exec")), "no ready executor in this build")
    def test_what_crosses_has_one_layout(self):
        """libstdc++ 10, with which packages are built, lays std::span out otherwise than later ones do."""
        asked = subprocess.run(["nm", "-DC", "--undefined-only", os.path.join(BIN, "highwater-exec")], capture_output=True,
                               text=True, check=True).stdout
        self.assertIn("hw::executor::fillConstant(", asked)
        self.assertNotIn("std::span", asked)

    @unittest.skipUnless(os.path.exists(os.path.join(BIN, "highwater-exec")), "no ready executor in this build")
    def test_another_release_serves_and_is_named(self):
        python = self.program("without/python3", "#!/bin/sh\necho\n")
        code, out, errors = run(HIGHWATER, "run", self.unknown("other.hws"), "--repeat", "1", "--json",
                                PATH=os.path.dirname(python))
        self.assertEqual(code, 0, errors)
        self.assertRegex(errors, "highwater: torch 9.8.7a0 is not here; running with torch ")
        self.assertEqual(json.loads(out)["outputs_different"], 0)

    def test_compiled_once_for_the_torch_of_the_session(self):
        session, python = self.session, sys.executable
        if torch2.TORCH2:
            session, python = os.path.join(self.folder, "2.hws"), torch2.TORCH2
            record(python, session)
        highwater = self.installed("compiled")
        plan = os.path.join(self.folder, "compiled.plan.json")
        code, _, errors = run(highwater, "plan", session, "--planner", "dtr:eqclass", "--ratio", "0.8", "-o", plan)
        self.assertEqual(code, 0, errors)
        for _ in range(2):
            code, out, errors = run(highwater, "run", session, plan, "--repeat", "1", "--json")
            self.assertEqual(code, 0, out + errors)
            report = json.loads(out)
            self.assertEqual(report["outputs_different"], 0)
            self.assertEqual(report["measured_peak_bytes"], report["predicted_peak_bytes"])
        self.assertEqual(errors, "")  # the second time there is nothing to say


if __name__ == "__main__":
    if not os.path.isdir(SHARE):
        skip("this build is without the executor")
    if run(sys.executable, "-c", "import torch")[0] != 0:
        skip("torch is not installed (scripts/setup)")
    unittest.main()
