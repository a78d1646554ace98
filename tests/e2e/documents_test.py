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
import threading
import unittest

import nightly

BIN = os.environ.get("HIGHWATER_BIN", "build/release/bin")
HIGHWATER = os.path.abspath(os.path.join(BIN, "highwater"))
ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
TRAINING = os.path.join(ROOT, "tests", "training")

# Lines that cannot run here, and why; all others do.
ELSEWHERE = {
    "--gpu": "a GPU",
    "--nnodes": "two machines",
    "join a.hws b.hws": "what two machines recorded",
}


def command_lines(document):
    """What stands in its indented blocks behind "highwater", without the comment."""
    with open(document, encoding="utf-8") as file:
        for line in re.findall(r"(?m)^    highwater (\S.*)$", file.read()):
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
    """In order, each after those before it in its document, in a folder with what the reader of that page has."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        for folder in ("bin", "venv/bin"):
            os.makedirs(self.path(folder))
        os.symlink(sys.executable, self.path("bin/python3"))
        with open(self.path("venv/bin/python"), "w") as file:  # a link would leave its packages behind
            file.write(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        with open(self.path("bin/torchrun"), "w") as file:
            file.write(f'#!/bin/sh\nexec {sys.executable} -m torch.distributed.run --redirects 1 --tee 1 "$@"\n')
        for file in ("bin/torchrun", "venv/bin/python"):
            os.chmod(self.path(file), 0o755)
        os.symlink(os.path.join(ROOT, "tests"), self.path("tests"))
        with open(self.path("rules.json"), "w") as file:
            file.write('[{"set": "input", "op": "aten::embedding", "layer": "encoder.*"}]')
        self.environment = {**os.environ, "PATH": self.path("bin") + os.pathsep + os.environ["PATH"],
                            "QT_QPA_PLATFORM": "offscreen", "OMP_NUM_THREADS": "1"}
        self.running, self.applied = [], None

    def path(self, name):
        return os.path.join(self.folder, name)

    def program(self, name, target="train.py"):
        shutil.copy(os.path.join(TRAINING, name), self.path(target))

    def program_of(self, document):
        """The one that the page shows."""
        with open(document, encoding="utf-8") as file, open(self.path("train.py"), "w", encoding="utf-8") as program:
            program.write(re.search(r"```python\n(.*?)```", file.read(), re.DOTALL)[1])

    def record(self, session, *arguments):
        self.run_line(["record", "-o", session, "--", "python3", "train.py", *arguments])

    def record_all(self):
        """What pages begin with."""
        for session in ("run", "other", "small", "batch8"):
            self.record(session + ".hws")
        self.record("batch16.hws", "--batch", "16")

    def start(self, words, **options):
        process = subprocess.Popen(words, cwd=self.folder, env=self.environment, stderr=subprocess.PIPE, text=True, **options)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        return process

    def training(self, number):
        """PIDs of trainings that run, that many."""
        while len(self.running) < number:
            process = self.start(["python3", "train.py", "--steps", "1000000"], stdout=subprocess.PIPE)
            process.stdout.readline()  # it has begun
            self.running.append(process)
            threading.Thread(target=process.stdout.read, daemon=True).start()
        return [str(process.pid) for process in self.running[:number]]

    def run_line(self, words):
        names = [word for word in words if word in ("PID", "4711", "4712")]
        pids = dict(zip(names, self.training(len(names))))
        words = [pids.get(word, word) for word in words]
        if words[0] in ("view", "apply"):
            return getattr(self, words[0])(words)
        done = subprocess.run([HIGHWATER, *words], cwd=self.folder, env=self.environment, capture_output=True, text=True,
                              timeout=300, check=False)
        enough = words[:2] == ["record", "--on-oom"]  # there is memory enough, and nothing to record
        self.assertEqual(done.returncode, 5 if enough else 0, " ".join(words) + "\n" + done.stderr)
        if words[0] == "release":
            self.assertEqual(self.applied.wait(60), 0, self.applied.stderr.read())
            self.applied = None

    def apply(self, words):
        """It stays until it is released."""
        if self.applied:
            self.run_line(["release", words[1]])
        self.applied = self.start([HIGHWATER, *words])
        said = ""
        while " acts" not in said:
            line = self.applied.stderr.readline()
            self.assertTrue(line, said)
            said += line

    def view(self, words):
        """A window, which stays."""
        process = self.start([HIGHWATER, *words])
        with self.assertRaises(subprocess.TimeoutExpired, msg=" ".join(words)):
            process.wait(4)
        process.terminate()
        self.assertNotIn("error", process.communicate()[1])  # Qt says that this platform is a plain one

    def check(self, name, *left_out):
        """How many lines ran."""
        ran = 0
        for words in command_lines(os.path.join(ROOT, name)):
            line = " ".join(words)
            if any(part in line for part in (*ELSEWHERE, *left_out)):
                continue
            with self.subTest(document=name, line=line):
                output = self.path(words[words.index("-o") + 1]) if "-o" in words else ""
                if words[0] in ("record", "attach") and os.path.exists(output):
                    os.remove(output)  # as a reader who goes on from another page
                self.run_line(words)
                ran += 1
        return ran

    def test_the_readme(self):
        self.program("transformer.py")
        self.assertGreaterEqual(self.check("README.md", "view"), 4)


def add_test(document):
    """At night, of all lines of a page."""
    name = os.path.relpath(document, ROOT)

    @nightly.nightly
    def test(self):
        self.program("transformer.py")
        self.program("varying_transformer.py", "varying.py")
        if name == "docs/first-steps.md":
            self.program_of(document)
        else:
            self.record_all()
        ran, lines = self.check(name), len(list(command_lines(document)))
        print(f"{name}: {ran} of {lines} lines ran", file=sys.stderr)
        self.assertGreater(ran, 0)
    setattr(Lines, "test_all_of_" + re.sub(r"\W", "_", name), test)


for page in documents():
    if any(command_lines(page)):
        add_test(page)

if __name__ == "__main__":
    nightly.main()
