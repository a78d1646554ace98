#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the documents and the comments point to is there."""
import glob
import os
import re
import unittest

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
SOURCES = ("app", "bench", "core", "executor", "planners", "profiler", "resources", "scripts", "tests", "viewer")
DOCUMENTS = ["README.md", "CONTRIBUTING.md"] + sorted(glob.glob("docs/*.md", root_dir=ROOT))


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


def code():
    for top in SOURCES:
        for kind in ("h", "cpp", "py", "txt"):
            yield from glob.glob(f"{top}/**/*.{kind}", root_dir=ROOT, recursive=True)


class Documents(unittest.TestCase):
    def test_links_lead_somewhere(self):
        for document in DOCUMENTS:
            for link in re.findall(r"\]\(([^)#\s]+)", read(document)):
                if "://" in link:
                    continue
                target = os.path.join(ROOT, os.path.dirname(document), link)
                self.assertTrue(os.path.exists(target), f"{document}: no {link}")

    def test_files_that_are_named_exist(self):
        for document in DOCUMENTS:
            for named in re.findall(r"`((?:docs|sessions|" + "|".join(SOURCES) + r")/[\w./-]*)`", read(document)):
                self.assertTrue(os.path.exists(os.path.join(ROOT, named)), f"{document}: no {named}")

    def test_documents_that_comments_cite_exist(self):
        for name in code():
            for cited in re.findall(r"\b(?:docs/[\w-]+|[A-Z]{4,})\.md\b", read(name)):
                self.assertTrue(os.path.exists(os.path.join(ROOT, cited)), f"{name}: no {cited}")

    def test_rules_that_comments_cite_are_the_judges(self):
        rules = set(re.findall(r"^\*\*Rule (\d+):", read("docs/judge.md"), re.MULTILINE))
        self.assertEqual(rules, {str(number + 1) for number in range(len(rules))})
        cited = 0
        for name in code():
            if name.endswith((".h", ".cpp")) and not name.startswith("tests/"):
                for number in re.findall(r"//.*\(?\brule (\d+)\b", read(name)):
                    self.assertIn(number, rules, name)
                    cited += 1
        self.assertGreater(cited, 5)


if __name__ == "__main__":
    unittest.main()
