#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The command line as scripts use it: JSON keys, exit codes, one clear error and a hint."""
import contextlib
import csv
import hashlib
import json
import os
import pathlib
import pickle
import socket
import sqlite3
import subprocess
import sys
import tempfile
import unittest

HIGHWATER = os.path.join(os.environ.get("HIGHWATER_BIN", "build/release/bin"), "highwater")
SAMPLE = pathlib.Path(__file__).resolve().parents[2] / "sessions" / "transformer.hws"
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


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def plans_in(session):
    with contextlib.closing(sqlite3.connect(session)) as database:
        return [planner for planner, in database.execute("SELECT planner FROM plans ORDER BY id")]


BLOCKS = """id,lower,upper,size
a,0,10,1000
b,2,4,500
c,4,12,700
"""


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
        told = self.json_of(*arguments, code=code)["error"]
        self.assertEqual(told["code"], code)
        self.assertEqual(done.stderr, f"highwater: error: {told['what']}\nhint: {told['hint']}\n")

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

    def test_options_reach_the_planner_and_unknown_ones_are_usage_errors(self):
        plan = self.path / "p.plan.json"
        self.json_of("plan", "--planner", "dtr:lru", "--ratio", "0.8", "--options", "dealloc=banish", self.log, "-o", plan)
        self.assertEqual(json.loads(plan.read_text())["options"], {"dealloc": "banish"})
        self.json_of("plan", self.log, "--planner", "echo", "--ratio", "1", "--options", "encodings=off")
        self.refused(2, "encoding=off", "plan", self.log, "--planner", "echo", "--ratio", "1", "--options", "encoding=off")
        self.refused(2, "all=2", "plan", self.log, "--planner", "chen-cheap", "--ratio", "1", "--options", "all=2")
        self.refused(2, "all=1", "plan", self.log, "--planner", "none", "--ratio", "1", "--options", "all=1")
        self.refused(2, "dealloc", "plan", self.log, "--planner", "dtr:lru", "--ratio", "1", "--options", "dealloc")
        done = self.run_command("plan", self.log, "--planner", "echo", "--ratio", "1", "--options", "x=1")
        self.assertIn("encodings=on|off", done.stderr)

    def test_sweep_keeps_planner_then_ratio_order(self):
        table = self.path / "t.csv"
        answer = self.json_of("sweep", self.log, "--planners", "none,dtr:eqclass", "--ratios", "1.0,0.6,0.01", "--csv", table)
        self.assertEqual([(row["planner"], row["ratio"]) for row in answer["rows"]],
                         [(planner, ratio) for planner in ("none", "dtr:eqclass") for ratio in (1.0, 0.6, 0.01)])
        self.assertEqual([row["status"] for row in answer["rows"][:3]], ["ok", "infeasible", "infeasible"])
        self.assertIn("clock", answer["rows"][4])
        self.assertEqual(len(table.read_text().splitlines()), 7)

    def test_exports_are_written_and_refused(self):
        session, plan = self.path / "small.hws", self.path / "p.plan.json"
        self.json_of("import", self.log, "-o", session)
        self.refused(4, "keeps no plan", "export", session, "--to", "layers", "-o", self.path / "l.csv")
        self.json_of("plan", session, "--planner", "dtr:eqclass", "--ratio", "0.6", "-o", plan, "--save")
        for form, name in (("perfetto", "t.pftrace"), ("csv", "tables"), ("layers", "l.csv")):
            written = self.json_of("export", session, "--to", form, "-o", self.path / name)
            self.assertEqual(written["file"], str(self.path / name))
            self.assertTrue((self.path / name).exists())
        with open(self.path / "tables" / "ops.csv", newline="") as file:
            self.assertEqual(len(list(csv.DictReader(file))), 40)
        self.json_of("export", plan, "--session", session, "--to", "layers", "-o", self.path / "l2.csv")
        self.assertEqual((self.path / "l.csv").read_text(), (self.path / "l2.csv").read_text())
        self.refused(2, "--session", "export", plan, "--to", "layers", "-o", self.path / "l.csv")
        self.refused(4, "checkpoint of a layer", "export", session, "--to", "torch-policy", "-o", self.path / "p.py")
        self.refused(2, "no table", "export", session, "--to", "csv", "--table", "none", "-o", self.path / "n.csv")
        self.refused(4, "cannot write", "export", session, "--to", "perfetto", "-o", self.path / "no" / "t")
        self.refused(2, "--to", "export", session, "--to", "pdf", "-o", self.path / "t.pdf")

    def test_diff_names_what_differs(self):
        self.assertEqual(self.json_of("diff", self.log, self.log), {"differences": []})
        other = self.path / "other.log"
        other.write_text(small_log(7))
        found = {item["what"]: item for item in self.json_of("diff", self.log, other)["differences"]}
        self.assertEqual((found["ops"]["a"], found["ops"]["b"]), (40, 14))
        self.assertIn("peak_bytes", found)
        plans = [self.path / "a.plan.json", self.path / "b.plan.json"]
        for plan, planner in zip(plans, ("none", "dtr:eqclass")):
            self.json_of("plan", self.log, "--planner", planner, "--ratio", "1" if planner == "none" else "0.6", "-o", plan)
        found = [item["what"] for item in self.json_of("diff", *plans, "--session", self.log)["differences"]]
        self.assertIn("planner", found)
        self.assertTrue(any(what.startswith("recomputes op") and "layer" in what for what in found), found)
        self.refused(2, "one is a plan", "diff", self.log, plans[0])

    def test_categories_by_rules_of_the_user(self):
        session, rules = self.path / "small.hws", self.path / "rules.json"
        self.json_of("import", self.log, "-o", session)
        before = self.json_of("info", session)["categories"]
        rules.write_text('[{"set": "input", "category": "parameter"}]')
        done = self.json_of("categorize", session, "--rules", rules)
        self.assertEqual(done["changes"], [{"change": "parameter -> input", "storages": 1, "bytes": 1000}])
        self.assertEqual(self.json_of("info", session)["categories"]["input"], 1000)
        self.assertEqual(self.json_of("categorize", session)["changes"], [])
        self.json_of("categorize", session, "--reset")
        self.assertEqual(self.json_of("info", session)["categories"], before)
        rules.write_text('[{"set": "weights"}]')
        self.refused(4, "unknown category", "categorize", session, "--rules", rules)

    def test_layout_of_a_table(self):
        table, offsets = self.path / "t.csv", self.path / "o.csv"
        table.write_text("size,id,lower,upper\r\n4,b,0,10\r\n2,\"a,1\",0,5\r\n2,c,5,10\r\n")
        answer = self.json_of("layout", table, "-o", offsets)
        self.assertEqual((answer["arena_bytes"], answer["lower_bound_bytes"], answer["optimal"]), (6, 6, True))
        self.assertEqual((answer["blocks"], answer["live_peak_bytes"], answer["fragmentation"]), (3, 6, 0))
        with open(offsets, newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row["id"] for row in rows], ["b", "a,1", "c"])
        place = {row["id"]: int(row["offset"]) for row in rows}
        self.assertEqual(place["a,1"], place["c"])
        self.assertEqual(sorted((place["b"], place["c"])), [0, 2] if place["b"] else [0, 4])
        offsets.unlink()
        answer = self.json_of("layout", table, "--capacity", "5", "-o", offsets, code=3)
        self.assertEqual((answer["arena_bytes"], answer["lower_bound_bytes"]), (6, 6))
        self.assertFalse(offsets.exists())
        self.refused(3, "capacity", "layout", table, "--capacity", "5")
        table.write_text("id,lower,upper,size\na,0,1,5\nb,2,1,5\n")
        self.refused(4, "line 3", "layout", table)
        self.refused(4, "missing.csv", "layout", self.path / "missing.csv")
        self.refused(2, "alignment", "layout", table, "--alignment", "0")

    def test_layout_of_a_plan(self):
        plan, laid, offsets = (self.path / name for name in ("p.plan.json", "l.plan.json", "o.csv"))
        self.json_of("plan", self.log, "--planner", "dtr:eqclass", "--ratio", "0.6", "-o", plan)
        answer = self.json_of("layout", self.log, plan, "-o", laid)
        self.assertEqual(answer["live_peak_bytes"], self.json_of("check", self.log, plan)["peak_bytes"])
        self.assertEqual(self.json_of("check", self.log, laid)["peak_bytes"], answer["live_peak_bytes"])
        layout = json.loads(laid.read_text())["layout"]
        self.assertEqual(layout["arena_bytes"], answer["arena_bytes"])
        schedule = json.loads(laid.read_text())["schedule"]
        self.assertEqual([len(row) for row in layout["offsets"]], [0 if entry[0] == "f" else 1 for entry in schedule])
        self.assertEqual(list(layout["constants"]), ["0"])
        self.json_of("layout", self.log, plan, "-o", offsets)
        with open(offsets, newline="") as file:
            names = [row["id"] for row in csv.DictReader(file)]
        self.assertEqual(names[0], "c0")
        self.assertIn("a0.0", names)
        self.assertIn("merged_blocks", self.json_of("layout", self.log, plan, "--in-place"))
        self.refused(2, "needs a plan", "layout", self.make_session())

    def test_a_plan_comes_with_its_layout_and_fits_its_arena(self):
        plan = self.path / "p.plan.json"
        for options in (("--layout",), ("--fit", "arena")):
            planned = self.json_of("plan", self.log, "--planner", "dtr:eqclass", "--ratio", "0.6", *options, "-o", plan)
            self.assertEqual(planned["status"], "ok")
            self.assertEqual(json.loads(plan.read_text())["layout"]["arena_bytes"], planned["arena_bytes"])
        self.assertLessEqual(planned["arena_bytes"], planned["budget_bytes"])
        self.json_of("plan", self.log, "--planner", "none", "--ratio", "0.6", "--fit", "arena", code=3)

    def make_session(self):
        session = self.path / "made.hws"
        self.json_of("import", self.log, "-o", session)
        return session

    def test_usage_errors(self):
        self.refused(2, "--budget", "plan", self.log, "--planner", "none")
        self.refused(2, "no planner 'magic'", "plan", self.log, "--planner", "magic", "--ratio", "1")
        self.refused(2, "no size", "plan", self.log, "--planner", "none", "--budget", "lots")
        self.refused(2, "ratio", "plan", self.log, "--planner", "none", "--ratio", "-1")
        self.refused(2, "no command 'frobnicate'", "frobnicate")
        self.refused(2, "did you mean 'record'", "recrod", "-o", "run.hws")
        self.refused(2, "no option '--ratoi'\nhint: did you mean '--ratio'?", "plan", self.log, "--ratoi", "0.5")
        self.refused(2, "'more' is one word too many", "plan", self.log, "more", "--ratio", "0.5")
        self.assertIn("--ratio needs a value", self.run_command("plan", self.log, "--ratio").stderr)
        self.refused(2, "--step: 'last' is not a whole number", "plan", self.log, "--step", "last", "--ratio", "0.5")
        self.refused(2, "--to: 'svg' is not a choice\nhint: choose from: perfetto, csv, torch-policy, layers", "export", self.log,
                     "--to", "svg", "-o", "x.svg")
        self.refused(2, "write -- before the program", "train", "--budget", "1GB", "python3", "train.py")
        self.refused(2, "no command 'frob'", "help", "frob")
        self.refused(2, "no program", "record")
        self.refused(2, "unknown format", "import", self.log, "--format", "tarot")

    def test_the_program_to_record_keeps_its_options(self):
        show = "import sys; print(sys.argv[1:], file=sys.stderr)"
        for between in ([], ["--"]):
            done = self.run_command("record", "--warmup", "1", "-o", self.path / "none.hws", *between, "/usr/bin/python3", "-c",
                                    show, "--steps", "9", "--json")
            self.assertIn("['--steps', '9', '--json']", done.stderr)
            self.assertEqual(done.stdout, "")
            self.assertEqual("'-c' too (write -- before the program)" in done.stderr, not between)

    def test_the_best_planner_plans_unless_another_is_named(self):
        self.assertEqual(self.json_of("plan", self.log, "--ratio", "0.8")["planner"], "highwater")

    def test_what_is_read_is_not_written_over(self):
        session, plan = self.make_session(), self.path / "p.plan.json"
        self.json_of("plan", session, "--planner", "none", "--ratio", "1", "-o", plan)
        before = session.read_bytes(), plan.read_bytes()
        self.refused(2, "not written over", "plan", session, "--planner", "none", "--ratio", "1", "-o", session)
        self.refused(2, "not written over", "export", session, "--to", "perfetto", "-o", self.path / "." / session.name)
        self.refused(2, "not written over", "export", session, "--to", "layers", "--plan", plan, "-o", plan)
        self.refused(2, "not written over", "sweep", session, "--csv", session)
        table = (self.path / "folder").absolute() / "ops.csv"
        table.parent.mkdir()
        table.write_bytes(before[0])
        self.refused(2, "not written over", "export", table, "--to", "csv", "-o", table.parent)
        script = self.path / "train.py"
        script.write_text("")
        for outputs, words in ((("--report", script), "not written over"), (("--progress", script), "not written over"),
                               (("--report", "r.json", "--progress", "./r.json"), "both results")):
            done = self.run_command("train", "--budget", "1GB", *outputs, "--", "/usr/bin/python3", script)
            self.assertEqual((done.returncode, words in done.stderr), (2, True), done.stderr)
        self.assertEqual((table.read_bytes(), script.read_text()), (before[0], ""))
        self.assertEqual((session.read_bytes(), plan.read_bytes()), before)

    def test_a_file_alone_is_viewed(self):
        self.refused(4, "there is no file './run.hws'", "./run.hws")
        (self.path / "run.hws").touch()
        bare = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
        alone, viewed = (subprocess.run([HIGHWATER, *words, str(self.path / "run.hws")], env=bare, capture_output=True, text=True, timeout=60)
                         for words in ([], ["view"]))
        self.assertIn("no display", alone.stderr)
        self.assertEqual((alone.returncode, alone.stderr), (viewed.returncode, viewed.stderr))

    def window_fails(self, **others):
        environment = {name: value for name, value in os.environ.items()
                       if name not in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")}
        done = subprocess.run([HIGHWATER], env={**environment, **others}, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 5, done.stderr)
        return done.stderr

    def test_what_keeps_the_window_from_opening_is_told(self):
        self.assertRegex(self.window_fails(QT_QPA_PLATFORM="nonesuch"), "^highwater: error: .*nonesuch.*\nhint: ")
        folder = pathlib.Path("/tmp/.X11-unix")
        folder.mkdir(mode=0o1777, exist_ok=True)
        number = next(number for number in range(970, 990) if not (folder / f"X{number}").exists())
        with socket.socket(socket.AF_UNIX) as silent:
            silent.bind(str(folder / f"X{number}"))
        try:
            self.assertIn(f"error: the display ':{number}' does not answer\nhint: ", self.window_fails(DISPLAY=f":{number}"))
        finally:
            (folder / f"X{number}").unlink()

    def test_a_trace_without_a_step_tells_its_memory(self):
        blocks = self.path / "blocks.csv"
        blocks.write_text(BLOCKS)
        session = self.path / "blocks.hws"
        imported = self.json_of("import", blocks, "-o", session)
        self.assertEqual((imported["format"], imported["storages"]), ("allocation-csv", 3))
        info = self.json_of("info", session)
        self.assertIsNone(info["baseline"])
        self.assertEqual(info["recorded"]["peak_bytes"], 1700)  # b is gone when c comes
        self.assertEqual(info["recorded"]["end_bytes"], 0)
        self.assertEqual(info["recorded"]["events"], 6)
        self.assertIn("times", [gap["what"] for gap in info["gaps"]])
        shown = self.run_command("info", session).stdout
        self.assertIn("6 memory events", shown)
        plan = self.run_command("plan", session, "--ratio", "0.5", "-o", self.path / "p.plan")
        self.assertEqual(plan.returncode, 4)
        self.assertIn("not the ops", plan.stderr + plan.stdout)

    def snapshot(self, **more):
        """A snapshot of two devices and host memory: what is freed first was there before, and an allocation fails."""
        def event(action, address, size, time):
            frames = [{"filename": "/x/train.py", "line": 10, "name": "forward"}]
            return {"action": action, "addr": address, "size": size, "stream": 0, "time_us": time, "frames": frames}

        failed = {**event("oom", 0, 5_000_000_000, 4), "device_free": 7_000_000}
        traces = [[event("alloc", 50, 20_000_000, 1), event("free_completed", 1, 40_000_000, 3), failed],
                  [event("alloc", 1, 3_000_000, 2)]]
        path = self.path / "s.pickle"
        path.write_bytes(pickle.dumps({"segments": [], "device_traces": traces,
                                       "host_traces": [event("alloc", 9, 1000, 1)],
                                       "external_annotations": [{"stage": stage, "name": "step", "device": 0, "time_us": time}
                                                                for stage, time in (("START", 1), ("END", 2))], **more}))
        return path

    def test_a_snapshots_bytes_agree_wherever_they_are_told(self):
        path = self.snapshot()
        info = self.json_of("info", path)
        self.assertEqual((info["recorded"]["device"], info["recorded"]["peak_bytes"]), ("cuda:0", 60_000_000))
        for key in ("line", "file", "function", "layer"):
            told = self.json_of("info", path, "--by", key)
            self.assertEqual(told["peak_bytes"], 60_000_000, key)
            self.assertEqual(sum(group["peak_bytes"] for group in told["groups"]), 60_000_000, key)
        self.assertEqual({group["name"]: group["peak_bytes"] for group in self.json_of("info", path, "--by", "line")["groups"]},
                         {"(before the history)": 40_000_000, "train.py:10 forward": 20_000_000})
        self.assertEqual({each["device"]: each["peak_bytes"] for each in info["devices"]},
                         {"host": 1000, "cuda:0": 60_000_000, "cuda:1": 3_000_000})
        failed, = info["out_of_memory"]
        self.assertEqual((failed["asked_bytes"], failed["free_bytes"], failed["allocated_bytes"], failed["place"]),
                         (5_000_000_000, 7_000_000, 20_000_000, "train.py:10 forward"))
        self.assertEqual(info["annotations"], [{"name": "step", "times": 1, "time_ns": 1000, "peak_bytes": 60_000_000}])
        text = self.run_command("info", path).stdout
        for words in ("cuda:1: 2 memory events, peak 3.00 MB", "host: ", "asked for 5.00 GB, 7.00 MB free", "annotation step"):
            self.assertIn(words, text)

    def test_a_device_of_a_snapshot_is_chosen_by_its_name(self):
        path = self.snapshot()
        self.assertEqual(self.json_of("info", path, "--device", "cuda:1")["recorded"]["peak_bytes"], 3_000_000)
        self.assertEqual(self.json_of("info", path, "--device", "host", "--by", "line")["peak_bytes"], 1000)
        self.refused(2, "cuda:7", "info", path, "--device", "cuda:7")
        self.refused(2, "--device", "info", self.log, "--device", "cuda:0")

    def test_a_trace_without_memory_says_so(self):
        path = self.path / "n.sqlite"
        with contextlib.closing(sqlite3.connect(path)) as database:
            database.executescript("CREATE TABLE META_DATA_EXPORT(name TEXT, value TEXT);"
                                   "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, deviceId INTEGER,"
                                   " streamId INTEGER);"
                                   "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(100, 200, 0, 7);")
        info = self.json_of("info", path)
        self.assertIsNone(info["recorded"])
        self.assertEqual(info["gpu"]["kernels"], 1)
        self.assertIn("no memory was recorded", self.run_command("info", path).stdout)
        self.refused(4, "no memory", "info", path, "--by", "line")

    def test_a_tables_alignment_is_kept_and_its_gaps_are_not(self):
        table, offsets = self.path / "t.csv", self.path / "o.csv"
        table.write_text("buffer,start,end,size,alignment\na,0,9,3,1\nb,0,9,4,4\nc,2,7,5,4\n")
        answer = self.json_of("layout", table, "-o", offsets)
        self.assertEqual(answer["lower_bound_bytes"], 12)
        self.assertFalse(answer["optimal"] and answer["arena_bytes"] > 12)
        with open(offsets, newline="") as file:
            place = {row["id"]: int(row["offset"]) for row in csv.DictReader(file)}
        self.assertEqual([place[name] % 4 for name in ("b", "c")], [0, 0])
        sizes = {"a": 3, "b": 4, "c": 5}
        spans = sorted((place[name], place[name] + size) for name, size in sizes.items())
        self.assertTrue(all(end <= begin for (_, end), (begin, _) in zip(spans, spans[1:])), spans)
        table.write_text("id,lower,upper,size,gaps\na,0,10,4,3-7\nb,3,7,4,\n")
        self.refused(4, "line 2: block 'a' has gaps", "layout", table)
        self.refused(4, "line 2: block 'a' has gaps", "import", table, "-o", self.path / "t.hws")

    def test_a_trace_tells_how_busy_its_device_was(self):
        events = [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 20,
                   "args": {"External id": 7}},
                  {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 1, "dur": 1,
                   "args": {"correlation": 3}},
                  {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": 2,
                   "args": {"Device Type": 1, "Device Id": 0, "Addr": 64, "Bytes": 512, "Total Allocated": 512}},
                  {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 10, "dur": 60,
                   "args": {"device": 0, "stream": 7, "correlation": 3}},
                  {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoH", "pid": 0, "tid": 9, "ts": 80, "dur": 20,
                   "args": {"device": 0, "stream": 9, "bytes": 512}}]
        trace = self.path / "trace.json"
        trace.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
        gpu = self.json_of("info", trace)["gpu"]
        self.assertEqual((gpu["kernels"], gpu["copies"], gpu["kernels_without_op"]), (1, 1, 0))
        self.assertEqual(gpu["streams"], [{"stream": 7, "busy": 0.6}, {"stream": 9, "busy": 0.2}])
        self.assertIn("stream 7 busy 60.0 %", self.run_command("info", trace).stdout)

    def test_a_damaged_trace_tells_where_it_ends(self):
        trace = self.path / "damaged.json"
        trace.write_bytes(b'{"traceEvents": [{"ph":"X","cat":"cpu_op","name":"aten::add","tid":1,"ts":1,"dur":1},'
                          b'{"ph":"X","cat":"cpu_op","name":"aten::\xff')
        info = self.json_of("info", trace)
        self.assertEqual(info["ops"], 1)
        self.assertIn("aten::?", " ".join(gap["why"] for gap in info["gaps"] if gap["what"] == "end"))

    def sample(self):
        session = self.path / "sample.hws"
        session.write_bytes(SAMPLE.read_bytes())
        return session

    def test_only_who_is_asked_to_writes_into_a_session(self):
        session, plan = self.sample(), self.path / "p.plan.json"
        before, at, beside = digest(session), os.stat(session).st_mtime_ns, len(os.listdir(self.path))
        self.json_of("info", session)
        self.json_of("plan", session, "--planner", "dtr:eqclass", "--ratio", "0.8", "--layout", "-o", plan)
        self.json_of("check", session, plan)
        self.json_of("sweep", session, "--planners", "none,dtr:lru", "--ratios", "1.0,0.7")
        self.json_of("layout", session, plan)
        self.json_of("diff", session, session)
        self.json_of("export", session, "--to", "csv", "-o", self.path / "csv")
        self.json_of("export", session, "--to", "perfetto", "-o", self.path / "t.pftrace")
        for form in ("layers", "torch-policy"):
            self.json_of("export", session, "--to", form, "--plan", plan, "-o", self.path / form)
        self.json_of("export", plan, "--session", session, "--to", "layers", "-o", self.path / "layers.csv")
        self.run_command("categorize", session, "--show")
        if self.run_command("shot", "--help").returncode == 0:
            self.json_of("shot", session, "--view", "timeline", "--plan", plan, "-o", self.path / "t.png")
            self.json_of("report", session, "--plan", plan, "-o", self.path / "r.html")
        self.assertEqual(digest(session), before)
        self.assertEqual(os.stat(session).st_mtime_ns, at)
        self.assertEqual([name for name in os.listdir(self.path) if name.startswith(session.name)], [session.name])
        self.assertGreater(len(os.listdir(self.path)), beside)

    def test_a_plan_is_kept_in_its_session_where_that_is_asked_for(self):
        fresh, session, layers = self.path / "fresh.hws", self.sample(), self.path / "layers.csv"
        self.json_of("import", self.log, "-o", fresh)
        self.json_of("plan", fresh, "--planner", "none", "--ratio", "1")
        self.refused(4, "plan --save", "export", fresh, "--to", "layers", "-o", layers)
        before = plans_in(session)
        self.json_of("plan", session, "--planner", "dtr:eqclass", "--ratio", "0.7", "--save")
        self.assertEqual(plans_in(session), before + ["dtr:eqclass"])
        self.json_of("export", session, "--to", "layers", "-o", layers)
        with open(layers, newline="") as file:
            self.assertGreater(sum(int(row["dropped_bytes"]) for row in csv.DictReader(file)), 0)
        self.refused(4, "no Highwater session", "plan", self.log, "--planner", "none", "--ratio", "1", "--save")
        for command in ("plan", "run", "categorize"):
            self.assertRegex(self.run_command(command, "--help").stdout, "session (itself )?keeps|Keep the plan in SESSION")

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
