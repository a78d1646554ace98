# SPDX-License-Identifier: MIT
"""What tests that record have in common: a folder of their own, scripts and a session in it."""
import os
import sqlite3
import tempfile
import textwrap
import unittest


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

    def query(self, sql):
        database = sqlite3.connect(self.session)
        try:
            return database.execute(sql).fetchall()
        finally:
            database.close()
