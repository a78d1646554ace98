#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The command lines that README and docs show: their words are known, and they run in a folder such as a reader has."""
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

import nightly

BIN = os.environ.get("HIGHWATER_BIN", "build/release/bin")
HIGHWATER = os.path.abspath(os.path.join(BIN, "highwater"))
ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
TRAINING = os.path.join(ROOT, "tests", "training")

# What takes another machine, a window, a process that runs already, files that only a reader has, or another model.
ELSEWHERE = ("torchrun", "PID", "4711", " view ", "--gpu", "--ranks", "ranks.svg", "plans/", "a.hws", "venv/", "--build", "varying.hws", "record --on-oom", "torch-policy",
             "--select layer4", "highwater-exec")


def command_lines(document):
    """What stands in its indented blocks behind "highwater", without the comment."""
    with open(document, encoding="utf-8") as file:
        for line in re.findall(r"(?m)^    highwater (.*)$", file.read()):
            words = shlex.split(line, comments=True)
            yield words[:words.index("|")] if "|" in words else words


def documents():
    return [os.path.join(ROOT, "README.md"), *sorted(glob.glob(os.path.join(ROOT, "docs", "*.md")))]


class Words(unittest.TestCase):
    def help_of(self, command):
        done = subprocess.run([HIGHWATER, command, "--help"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, command + done.stderr)
        return done.stdout

    def test_every_command_and_option_is_one(self):
        lines = [(document, words) for document in documents() for words in command_lines(document)]
        self.assertGreater(len(lines), 80)
        helps = {command: self.help_of(command) for command in {words[0] for _, words in lines}}
        for document, words in lines:
            ours = words[1:words.index("--")] if "--" in words else words[1:]
            for option in (word for word in ours if re.match(r"--?[a-z]", word)):
                with self.subTest(document=os.path.basename(document), line=" ".join(words)):
                    self.assertRegex(helps[words[0]], rf"(?m)^  .*(?<![\w-]){re.escape(option)}(?![\w-])")


class Lines(unittest.TestCase):
    """In order, each after those before it in its document."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        os.mkdir(os.path.join(self.folder, "bin"))
        os.symlink(sys.executable, os.path.join(self.folder, "bin", "python3"))
        shutil.copy(os.path.join(TRAINING, "transformer.py"), os.path.join(self.folder, "train.py"))
        for session, batch in (("run", 8), ("other", 8), ("batch8", 8), ("batch16", 16)):
            self.run_line(["record", "-o", session + ".hws", "--", "python3", "train.py", "--batch", str(batch)])
        with open(os.path.join(self.folder, "rules.json"), "w") as file:
            file.write('[{"set": "input", "op": "aten::embedding", "layer": "encoder.*"}]')

    def run_line(self, words):
        path = os.path.join(self.folder, "bin") + os.pathsep + os.environ["PATH"]
        done = subprocess.run([HIGHWATER, *words], cwd=self.folder, env={**os.environ, "PATH": path}, capture_output=True, text=True,
                              timeout=300)
        self.assertEqual(done.returncode, 0, " ".join(words) + "\n" + done.stderr)

    def check(self, name):
        ran = 0
        for words in command_lines(os.path.join(ROOT, name)):
            if any(other in " " + " ".join(words) + " " for other in ELSEWHERE):
                continue
            with self.subTest(line=" ".join(words)):
                if "-o" in words and words[0] == "record":  # as a reader who goes on from another page
                    output = os.path.join(self.folder, words[words.index("-o") + 1])
                    if os.path.exists(output):
                        os.remove(output)
                self.run_line(words)
                ran += 1
        return ran

    def test_the_readme(self):
        self.assertGreaterEqual(self.check("README.md"), 4)

    @nightly.nightly
    def test_questions(self):
        self.assertGreaterEqual(self.check("docs/how-to.md"), 30)


if __name__ == "__main__":
    nightly.main()
