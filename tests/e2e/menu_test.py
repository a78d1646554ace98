#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plans that choose implementations: from a menu file, from the session's table, under check."""
import json
import os
import pathlib
import sqlite3
import subprocess
import tempfile
import unittest

HIGHWATER = os.path.join(os.environ.get("HIGHWATER_BIN", "build/release/bin"), "highwater")
FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../sessions/transformer.hws")
PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm")


class Menu(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        self.session = self.path / "transformer.hws"
        self.session.write_bytes(pathlib.Path(FILE).read_bytes())
        self.plan = self.path / "small.plan.json"

    def tearDown(self):
        self.folder.cleanup()

    def run_command(self, *arguments, code=0):
        done = subprocess.run([HIGHWATER, *map(str, arguments)], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def json_of(self, *arguments):
        return json.loads(self.run_command(*arguments, "--json").stdout)

    def products(self):
        """Ops of the last step that have other implementations: session id, index, captured time."""
        with sqlite3.connect(self.session) as database:
            first, end = database.execute("SELECT first_seq, end_seq FROM steps ORDER BY id DESC").fetchone()
            ops = database.execute("SELECT id, name, duration_ns FROM ops WHERE seq >= ? AND seq < ? ORDER BY seq",
                                   (first, end)).fetchall()
        return [(row[0], i, row[2]) for i, row in enumerate(ops) if row[1] in PRODUCTS]

    def plan_with(self, *arguments):
        return self.json_of("plan", self.session, "--planner", "monet", "--ratio", 0.8, "--work-limit", 1, "-o",
                            self.plan, *arguments)

    def test_a_file_is_a_menu_and_check_needs_only_the_plan(self):
        menu = self.path / "menu.json"
        entries = [{"op": i, "name": "fast", "kind": "algorithm", "time_ns": time // 2, "workspace_bytes": 4096}
                   for _, i, time in self.products()]
        menu.write_text(json.dumps({"format": "highwater-menu", "version": 1, "implementations": entries}))
        made = self.plan_with("--menu", menu)
        self.assertLess(made["overhead"], 1)
        chosen = json.loads(self.plan.read_text())["implementations"]
        self.assertEqual(set(chosen.values()), {"fast"})
        menu.unlink()
        checked = self.json_of("check", self.session, self.plan)
        self.assertTrue(checked["valid"] and checked["within_budget"] and checked["as_predicted"])
        for key in ("peak_bytes", "time_ns", "overhead"):
            self.assertEqual(checked[key], made[key])

    def test_without_the_menu_nothing_is_chosen(self):
        made = self.plan_with()
        self.assertGreaterEqual(made["overhead"], 1)
        self.assertEqual(json.loads(self.plan.read_text())["implementations"], {})

    def test_the_sessions_table_is_a_menu_and_beats_the_plans_figures(self):
        with sqlite3.connect(self.session) as database:
            for op, _, time in self.products():
                database.execute("INSERT INTO implementations VALUES(?, 'fast', ?, 4096)", (op, time // 2))
        made = self.plan_with()
        self.assertLess(made["overhead"], 1)
        self.assertGreaterEqual(self.plan_with("--use", "none")["overhead"], 1)
        self.plan_with()
        with sqlite3.connect(self.session) as database:
            database.execute("UPDATE implementations SET duration_ns = duration_ns + 1")
        checked = self.json_of("check", self.session, self.plan)
        self.assertGreater(checked["time_ns"], made["time_ns"])
        self.assertFalse(checked["as_predicted"])

    def test_sweep_takes_a_menu(self):
        menu = self.path / "menu.json"
        _, op, time = self.products()[0]
        menu.write_text(json.dumps({"format": "highwater-menu", "version": 1, "implementations": [
            {"op": op, "name": "fast", "kind": "algorithm", "time_ns": time // 2, "workspace_bytes": 0}]}))
        rows = self.json_of("sweep", self.session, "--planners", "none,monet", "--ratios", "1.0", "--time-limit", 1,
                            "--menu", menu)["rows"]
        self.assertEqual(rows[0]["overhead"], 1)
        self.assertLess(rows[1]["overhead"], 1)

    def test_what_is_wrong_is_said(self):
        menu = self.path / "menu.json"
        menu.write_text('{"format": "highwater-menu", "version": 1, "implementations": [{"op": 1}]}')
        for command in (("plan", self.session, "--planner", "monet", "--ratio", 1), ("sweep", self.session)):
            refused = self.run_command(*command, "--menu", menu, code=4)
            self.assertIn("entry 0: 'name' is missing", refused.stderr)
        self.run_command("plan", self.session, "--planner", "monet", "--ratio", 1, "--use", "magic", code=2)
        self.run_command("plan", self.session, "--planner", "none", "--ratio", 1, "--use", "none", code=2)
        self.plan_with()
        text = self.plan.read_text()
        self.assertIn('"implementations": {}', text)
        self.plan.write_text(text.replace('"implementations": {}', '"implementations": {"3": "magic"}'))
        refused = self.run_command("check", self.session, self.plan, code=4)
        self.assertIn("no implementation 'magic' of op 3", refused.stderr)


if __name__ == "__main__":
    unittest.main()
