#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The check of include directions, on trees made for it."""
import os
import subprocess
import tempfile
import unittest

LINT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "lint_includes")
TABLE = """
low ->                 # a comment
middle -> low
middle/inner ->
high -> middle
high without Q
"""


class Includes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = folder.name
        self.write("scripts/include_directions.txt", TABLE)
        self.write("low/low.h", "#include <string>\n")
        self.write("middle/middle.h", '#include "low/low.h"\n#include "middle/sub/part.h"\n')
        self.write("middle/sub/part.h", '#include "../middle.h"\n')
        self.write("middle/inner/inner.cpp", '#include "inner.h"\n')
        self.write("high/high.cpp", '#include "middle/middle.h"\n')

    def write(self, name, text):
        path = os.path.join(self.tree, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def lint(self):
        done = subprocess.run([LINT, self.tree], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def assertFault(self, *parts):
        status, said = self.lint()
        self.assertEqual(status, 1, said)
        for part in parts:
            self.assertIn(part, said)

    def test_includes_along_the_arrows_pass(self):
        self.assertEqual(self.lint(), (0, ""))

    def test_an_include_against_the_direction_is_named_by_file_and_line(self):
        self.write("low/low.cpp", '#include "low/low.h"\n\n  #  include "high/high.h"\n')
        self.assertFault('low/low.cpp:3: low may not include "high/high.h"', "1 faults")

    def test_arrows_are_not_followed_further(self):
        self.write("high/high.cpp", '#include "low/low.h"\n')
        self.assertFault("high/high.cpp:1:")

    def test_a_folder_with_a_line_of_its_own_has_not_that_of_the_folder_above(self):
        self.write("middle/inner/inner.cpp", '#include "low/low.h"\n')
        self.assertFault("middle/inner/inner.cpp:1: middle/inner may not")

    def test_one_header_of_a_folder_may_be_allowed(self):
        self.write("scripts/include_directions.txt", TABLE.replace("middle/inner ->", "middle/inner -> low/low.h"))
        self.write("middle/inner/inner.cpp", '#include "low/low.h"\n')
        self.assertEqual(self.lint(), (0, ""))
        self.write("middle/inner/inner.cpp", '#include "low/other.h"\n')
        self.assertFault('middle/inner may not include "low/other.h"')

    def test_a_path_that_goes_up_is_followed(self):
        self.write("low/low.cpp", '#include "../high/high.h"\n')
        self.write("high/high.h", "")
        self.assertFault("low/low.cpp:1:")

    def test_a_folder_without_a_line_is_named(self):
        self.write("scripts/include_directions.txt", TABLE + "deep/one ->\n")
        self.write("deep/two/two.h", "")
        self.assertFault("deep/two/two.h: ", "no line for its folder")

    def test_libraries_that_a_folder_does_without(self):
        self.write("high/deep/window.h", "#include <QWidget>\n")
        self.assertFault("high/deep/window.h:1: high does without <QWidget>")

    def test_a_table_with_a_circle_is_refused(self):
        self.write("scripts/include_directions.txt", TABLE.replace("low -> ", "low -> high "))
        self.assertFault("a circle: high -> middle -> low -> high")

    def test_a_line_that_says_nothing_is_refused(self):
        self.write("scripts/include_directions.txt", "low core\n")
        self.assertFault("include_directions.txt:1: neither")


class ThisTree(unittest.TestCase):
    def test_every_folder_of_sources_has_a_line(self):
        root = os.path.join(os.path.dirname(LINT), "..")
        with open(os.path.join(root, "scripts", "include_directions.txt"), encoding="utf-8") as table:
            rows = {line.split()[0] for line in table if "->" in line and not line.startswith("#")}
        for top in ("app", "bench", "core", "executor", "live", "planners", "profiler", "tests", "viewer"):
            for folder, _, names in os.walk(os.path.join(root, top)):
                if not any(name.endswith((".h", ".cpp")) for name in names):
                    continue
                above = os.path.relpath(folder, root)
                while above and above not in rows:
                    above = os.path.dirname(above)
                self.assertTrue(above, f"no line for {folder}")


if __name__ == "__main__":
    unittest.main()
