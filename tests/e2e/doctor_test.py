#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`doctor` names each part and what to do about a missing one; manual page and completions follow the commands."""
import json
import os
import re
import subprocess
import sys
import unittest

from sessions import BIN, HIGHWATER, InFolder, run


def doctor(*arguments, **environment):
    done = subprocess.run([HIGHWATER, "doctor", "--json", *arguments], capture_output=True, text=True, timeout=60,
                          env={**os.environ, **environment})
    report = json.loads(done.stdout)
    return done.returncode, report, {part["part"]: part for part in report["parts"]}


class DoctorTest(InFolder):
    def test_a_python_without_torch(self):
        python = self.script("#!/bin/sh\necho\n", "python3")
        os.chmod(python, 0o755)
        code, report, parts = doctor(python)
        self.assertEqual((code, report["works"], report["python"]), (5, False, python))
        self.assertEqual(parts["torch"]["state"], "missing")
        self.assertIn("pip install torch", parts["torch"]["hint"])
        self.assertNotIn("capture", parts)

    def test_no_compiler(self):
        code, _, parts = doctor(CXX="/nowhere/c++", XDG_CACHE_HOME=self.folder)
        self.assertEqual(parts["compiler"]["state"], "limited")
        self.assertIn("g++", parts["compiler"]["hint"])
        if parts["torch"]["state"] == "ok":
            self.assertEqual(parts["capture"]["state"], "limited")
            self.assertIn("no C++ compiler", parts["capture"]["what"])
            self.assertIn("g++", parts["capture"]["hint"])

    def test_a_machine_that_has_it_all(self):
        if subprocess.run([sys.executable, "-c", "import torch"], capture_output=True, check=False).returncode != 0:
            self.skipTest("torch is not installed (scripts/setup)")
        code, report, parts = doctor(sys.executable)
        present = {"agent", "compiler", "torch", "capture"}
        if os.path.isdir(os.path.join(BIN, "..", "share", "highwater", "executor")):
            present.add("executor")
        for part in present:
            self.assertEqual((parts[part]["state"], parts[part]["hint"]), ("ok", ""), parts[part])
        self.assertEqual((code, report["works"]), (0, True) if "executor" in present else (5, False))
        self.assertIn(" in /", parts["torch"]["what"])

    def test_for_people(self):
        _, out, errors = run("doctor")
        self.assertEqual(errors, "")
        for part in ("agent", "torch", "attach", "cupti", "window"):
            self.assertRegex(out, rf"(?m)^{part} +(ok|limited|missing) ")


class DescriptionTest(InFolder):
    def commands(self):
        """Names of the help, without those of the program itself."""
        listed = run("--help")[1].partition("Subcommands:")[2]
        names = re.findall(r"(?m)^  ([a-z]+)", listed)
        self.assertIn("record", names)
        return names

    def test_the_manual_has_every_command_and_option(self):
        page = run("manual")[1]
        for name in self.commands():
            self.assertRegex(page, rf"(?m)^\.SS {name}\b")
        self.assertIn(".B \\-o, \\-\\-output \\fIVALUE\\fR\n", page)
        self.assertIn(".B \\-\\-contents\n", page)
        self.assertNotIn("plan\\-step", page)

    def test_bash_completes(self):
        script = os.path.join(self.folder, "completion")
        with open(script, "w") as file:
            file.write(run("completion", "bash")[1])

        def completed(*words):
            command = (f'. {script}; COMP_WORDS=(highwater {" ".join(words)}); COMP_CWORD={len(words)}; _highwater; '
                       'echo "${COMPREPLY[@]}"')
            done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=True)
            return done.stdout.split()

        self.assertEqual(completed("reco"), ["record"])
        self.assertEqual(completed("record", "--cont"), ["--contents"])
        self.assertEqual(completed("plan", "--planner", "chec"), ["checkmate"])

    def test_shells_without_one(self):
        code, out, errors = run("completion", "tcsh")
        self.assertEqual((code, out), (2, ""))
        self.assertRegex(errors, "highwater: error: .*tcsh.*\nhint: .*bash")
        for shell in ("zsh", "fish"):
            text = run("completion", shell)[1]
            for name in self.commands():
                self.assertIn(name, text)


if __name__ == "__main__":
    unittest.main()
