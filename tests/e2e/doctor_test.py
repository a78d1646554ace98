#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`doctor` names each part and what to do about a missing one; manual page and completions follow the commands."""
import json
import os
import re
import shutil
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


class CompiledTest(InFolder):
    """What is compiled for a torch, with a torch and a compiler that are not real."""

    def setUp(self):
        super().setUp()
        self.compiler = self.script('#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\necho made > "$2"\n', "c++")
        os.chmod(self.compiler, 0o755)
        self.captures = os.path.join(self.folder, "captures")

    def torch(self, version, cuda=False, function="_ZN3c103runENSt7__cxx1112basic_stringIcE"):
        """A folder to import it from."""
        folder = os.path.join(self.folder, version, function)
        for file, text in (("__init__.py", ""), ("version.py", f"__version__ = '{version}'\n"), ("lib/libtorch_cpu.so", version),
                           ("lib/libc10.so", f"\0{function}\0"), ("include/ATen/record_function.h", ""),
                           *([("lib/libc10_cuda.so", "")] if cuda else [])):
            path = os.path.join(folder, "torch", file)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as out:
                out.write(text)
        return folder

    def capture(self, torch, *arguments, program=HIGHWATER, **environment):
        done = subprocess.run([program, "doctor", "--json", *arguments, sys.executable], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "PYTHONPATH": torch, "XDG_CACHE_HOME": self.folder, **environment}, check=False)
        return {part["part"]: part for part in json.loads(done.stdout)["parts"]}["capture"]

    def test_is_compiled_when_asked_for(self):
        torch = self.torch("2.8.0+cu128")
        self.assertIn("when it is first wanted", self.capture(torch, CXX=self.compiler)["what"])
        path = self.capture(torch, "--build", "capture", CXX=self.compiler)["what"]
        self.assertTrue(os.path.isfile(path), path)
        self.assertEqual(self.capture(torch, CXX=self.compiler)["what"], path)

    def test_what_travels_serves_all_builds_of_a_release(self):
        environment = {"HIGHWATER_CAPTURES": self.captures}
        path = self.capture(self.torch("2.8.0+cu128"), "--build", "capture", CXX=self.compiler, **environment)["what"]
        self.assertTrue(os.path.basename(path).startswith("torch-2.8.0-"), path)
        missing = {"CXX": "/nowhere/c++", **environment}
        self.assertEqual(self.capture(self.torch("2.8.0"), **missing)["what"], path)
        old = self.torch("2.8.0", function="_ZNSt11logic_errorC1ERKNSt7__cxx1112basic_stringIcE")  # which is not the framework's
        for other in (self.torch("2.8.1"), self.torch("2.8.0a0+git"), self.torch("2.8.0+cu126", cuda=True), old):
            self.assertEqual(self.capture(other, **missing)["state"], "limited", other)

    def test_what_came_along_needs_no_compiler(self):
        torch = self.torch("2.8.0")
        self.capture(torch, "--build", "capture", CXX=self.compiler, HIGHWATER_CAPTURES=self.captures)
        installed = os.path.join(self.folder, "installed")
        shutil.copytree(os.path.join(BIN, "..", "lib"), installed + "/lib", symlinks=True)
        shutil.copytree(self.captures, installed + "/lib/captures", dirs_exist_ok=True)
        os.mkdir(installed + "/bin")
        program = shutil.copy(HIGHWATER, installed + "/bin/highwater")
        found = self.capture(torch, program=program, CXX="/nowhere/c++")
        self.assertEqual((found["state"], os.path.dirname(found["what"])), ("ok", os.path.realpath(installed) + "/lib/captures"))


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

    def test_each_command_has_a_page_of_its_own(self):
        for name in self.commands():
            page = run("manual", name)[1]
            self.assertTrue(page.startswith(f".TH HIGHWATER\\-{name.upper()} 1 "), page[:80])
            self.assertIn(f"highwater\\-{name} \\- ", page)
            self.assertIn(".SH EXAMPLES\n", page)
        self.assertIn(".B \\-\\-warmup \\fIVALUE\\fR\n", run("manual", "record")[1])
        code, _, errors = run("manual", "recrod")
        self.assertEqual((code, "did you mean 'record'" in errors), (2, True), errors)

    def test_every_command_has_an_example_of_itself(self):
        for name in self.commands():
            _, _, examples = run(name, "--help")[1].partition("Example")
            self.assertRegex(examples, rf"(?m)^  (source <\()?highwater {name}\b", name)

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
        self.assertEqual(completed("info", "run.hws", "--by", "fu"), ["function"])
        self.assertEqual(completed("export", "--to", "p"), ["perfetto"])

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
