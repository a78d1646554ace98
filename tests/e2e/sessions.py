# SPDX-License-Identifier: MIT
"""What tests that record have in common: the program, a folder of their own, scripts and a session in it."""
import os
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import unittest

BIN = os.environ.get("HIGHWATER_BIN", "build/release/bin")
HIGHWATER = os.path.join(BIN, "highwater")


def skip(why):
    print("skipped:", why)
    sys.exit(77)


def run(*arguments):
    done = subprocess.run([HIGHWATER, *map(str, arguments)], capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout, done.stderr


_made = {}


def once(key, make):
    """What `make` returned to the first test of this process that asked for it."""
    if key not in _made:
        _made[key] = make()
    return _made[key]


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.session = os.path.join(self.folder, "s.hws")

    def script(self, text, name="train.py"):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(textwrap.dedent(text))
        return path

    def lines_of(self, *command):
        """What each of two ranks writes into a file of its own, named by the command's last word and the rank."""
        results = os.path.join(self.folder, "lines")
        done = subprocess.run([*command, results], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.lines_in(results)

    @staticmethod
    def lines_in(results):
        lines = []
        for rank in (0, 1):
            with open(results + str(rank)) as file:
                lines.append(file.read())
        return lines

    def query(self, sql):
        database = sqlite3.connect(self.session)
        try:
            return database.execute(sql).fetchall()
        finally:
            database.close()
