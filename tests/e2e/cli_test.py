#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The command line as scripts use it: JSON keys, exit codes, one clear error and a hint."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HIGHWATER = os.path.join(os.environ.get("HIGHWATER_BIN", "build/release/bin"), "highwater")
LOG = """{"INSTRUCTION":"ANNOTATE","ANNOTATION":"START"}
{"INSTRUCTION":"CONSTANT","NAME":"x"}
{"INSTRUCTION":"MEMORY","NAME":"x","MEMORY":"1000"}
"""


def small_log(layers=20):
    """A chain forward and backward, as a simrd log."""
    lines = [LOG]

    def call(name, arguments, result):
        lines.append(json.dumps({"INSTRUCTION": "CALL", "NAME": name, "ARGS": arguments, "RESULT": [result], "TIME": "10"}))
        lines.append(json.dumps({"INSTRUCTION": "MEMORY", "NAME": result, "MEMORY": "1000"}))
        lines.append(json.dumps({"INSTRUCTION": "ALIAS", "NAME": result, "ALIAS": "-1"}))

    last = "x"
    for i in range(layers):
        call("layer", [last], f"a{i}")
        last = f"a{i}"
    gradient = last
    for i in reversed(range(layers)):
        call("layer_backward", [gradient, f"a{i}"], f"g{i}")
        if gradient.startswith("g"):
            lines.append(json.dumps({"INSTRUCTION": "RELEASE", "NAME": gradient}))
        lines.append(json.dumps({"INSTRUCTION": "RELEASE", "NAME": f"a{i}"}))
        gradient = f"g{i}"
    return "\n".join(line.strip() for line in lines) + "\n"


class CommandLine(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        self.log = self.path / "small.log"
        self.log.write_text(small_log())

    def tearDown(self):
        self.folder.cleanup()

    def run_command(self, *arguments):
        return subprocess.run([HIGHWATER, *map(str, arguments)], capture_output=True, text=True, timeout=120)

    def json_of(self, *arguments, code=0):
        done = self.run_command(*arguments, "--json")
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout)

    def refused(self, code, text, *arguments):
        done = self.run_command(*arguments)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertTrue(done.stderr.startswith("highwater: error: "), done.stderr)
        self.assertIn(text, done.stderr)
        self.assertIn("\nhint: ", done.stderr)

    def test_info_of_a_log_and_of_its_session_agree(self):
        session = self.path / "small.hws"
        imported = self.json_of("import", self.log, "-o", session)
        self.assertEqual((imported["format"], imported["ops"]), ("simrd", 40))
        self.assertGreater(imported["events"], 40)
        info = self.json_of("info", session)
        self.assertEqual(info, self.json_of("info", self.log))
        self.assertEqual(info["baseline"]["time_ns"], 400)
        self.assertEqual(sum(info["categories"].values()), info["baseline"]["peak_bytes"])
        self.refused(4, "exists already", "import", self.log, "-o", session)

    def test_plan_check_and_the_session_remembers(self):
        session, plan = self.path / "small.hws", self.path / "p.plan.json"
        self.json_of("import", self.log, "-o", session)
        for planner in ("chen-greedy", "dtr:eqclass"):
            planned = self.json_of("plan", session, "--planner", planner, "--ratio", "0.6", "-o", plan)
            self.assertEqual(planned["status"], "ok")
            self.assertLessEqual(planned["peak_bytes"], planned["budget_bytes"])
            checked = self.json_of("check", self.log, plan)
            self.assertTrue(checked["valid"] and checked["within_budget"] and checked["as_predicted"])
            self.assertEqual(checked["peak_bytes"], planned["peak_bytes"])
            self.assertEqual(checked["time_ns"], planned["time_ns"])
        document = json.loads(plan.read_text())
        document["budget_bytes"] = 10
        plan.write_text(json.dumps(document))
        self.assertFalse(self.json_of("check", session, plan, code=3)["within_budget"])
        document["schedule"] = document["schedule"][1:]
        plan.write_text(json.dumps(document))
        self.assertFalse(self.json_of("check", session, plan, code=6)["valid"])
        plan.write_text(plan.read_text()[:200])
        self.refused(4, "malformed", "check", session, plan)

    def test_a_plan_for_another_graph_is_refused(self):
        plan, other = self.path / "p.plan.json", self.path / "other.log"
        other.write_text(small_log(7))
        self.json_of("plan", self.log, "--planner", "none", "--ratio", "1", "-o", plan)
        self.refused(4, "another graph", "check", other, plan)

    def test_no_plan_says_what_would_do(self):
        plan = self.path / "p.plan.json"
        answer = self.json_of("plan", self.log, "--planner", "dtr:eqclass", "--ratio", "0.05", "-o", plan, code=3)
        self.assertNotEqual(answer["status"], "ok")
        self.assertFalse(plan.exists())
        enough = answer["smallest_budget_bytes"]
        self.assertEqual(self.json_of("plan", self.log, "--planner", "dtr:eqclass", "--budget", enough)["status"], "ok")
        self.refused(3, "smallest budget", "plan", self.log, "--planner", "dtr:eqclass", "--ratio", "0.05")

    def test_sweep_keeps_planner_then_ratio_order(self):
        table = self.path / "t.csv"
        answer = self.json_of("sweep", self.log, "--planners", "none,dtr:eqclass", "--ratios", "1.0,0.6,0.01", "--csv", table)
        self.assertEqual([(row["planner"], row["ratio"]) for row in answer["rows"]],
                         [(planner, ratio) for planner in ("none", "dtr:eqclass") for ratio in (1.0, 0.6, 0.01)])
        self.assertEqual([row["status"] for row in answer["rows"][:3]], ["ok", "infeasible", "infeasible"])
        self.assertIn("clock", answer["rows"][4])
        self.assertEqual(len(table.read_text().splitlines()), 7)

    def test_usage_errors(self):
        self.refused(2, "--budget", "plan", self.log, "--planner", "none")
        self.refused(2, "no planner 'magic'", "plan", self.log, "--planner", "magic", "--ratio", "1")
        self.refused(2, "no size", "plan", self.log, "--planner", "none", "--budget", "lots")
        self.refused(2, "ratio", "plan", self.log, "--planner", "none", "--ratio", "-1")
        self.refused(2, "", "frobnicate")
        self.refused(2, "no program", "record")
        self.refused(2, "unknown format", "import", self.log, "--format", "tarot")

    def test_input_errors(self):
        for name, content in (("empty.hws", b""), ("noise.hws", os.urandom(3000)), ("cut.log", small_log().encode()[:700]),
                              ("evil.pickle", b'cos\nsystem\n(S"touch pwned"\ntR.')):
            path = self.path / name
            path.write_bytes(content)
            self.refused(4, name, "info", path)
        self.refused(4, "missing.hws", "info", self.path / "missing.hws")
        self.refused(4, "", "run", self.log)


if __name__ == "__main__":
    if not os.access(HIGHWATER, os.X_OK):
        print("skipped: no highwater in HIGHWATER_BIN; build it with: cmake --build --preset release")
        sys.exit(77)
    unittest.main()
