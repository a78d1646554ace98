#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Records real training steps, plans them and runs the plans natively: peaks as predicted, no byte different."""
import glob
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

import nightly
import torch2

BIN = os.environ.get("HIGHWATER_BIN", "build/release/bin")
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HIGHWATER, EXECUTOR = os.path.join(BIN, "highwater"), os.path.join(BIN, "highwater-exec")


MASKED = """import torch
torch.manual_seed(0)
layer = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(layer.parameters(), 0.1)
inputs = torch.randn(16, 64)
for step in range(3):
    hidden = layer(inputs)
    chosen = hidden[hidden[:, 0] > 0]
    optimizer.zero_grad()
    (chosen * chosen).sum().backward()
    optimizer.step()
"""


# As a loader does with the batches of its workers: tensors upon storages that no op made.
FOREIGN = """import array
import torch
torch.manual_seed(0)
layer = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(layer.parameters(), 0.1)
for step in range(3):
    batch = torch.frombuffer(array.array("f", [step + 0.5] * 1024), dtype=torch.float32)
    inputs = torch.empty(0).set_(batch.storage(), 0, (16, 64), (64, 1))
    optimizer.zero_grad()
    layer(inputs).pow(2).sum().backward()
    optimizer.step()
"""


def skip(why):
    print("skipped:", why)
    sys.exit(77)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    return done.returncode, done.stdout, done.stderr


class RunTest(unittest.TestCase):
    SIZES = {"resnet": ("--batch", "32"), "transformer": ("--batch", "4", "--width", "64"),
             "lstm": ("--batch", "96", "--width", "64"), "unet": ("--batch", "2", "--size", "32")}

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()

    def session(self, model):
        """Recorded where it is first asked for."""
        session = os.path.join(self.folder, model + ".hws")
        if not os.path.exists(session):
            code, _, errors = run(HIGHWATER, "record", "-o", session, "--steps", "2", "--json", "--", sys.executable,
                                  os.path.join(ROOT, "training", model + ".py"), "--steps", "3", *self.SIZES[model])
            self.assertEqual(code, 0, errors)
        return session

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def execute(self, *arguments):
        code, out, errors = run(EXECUTOR, *arguments, "--repeat", "1", "--json")
        self.assertEqual(code, 0, out + errors)
        return json.loads(out)

    def assert_exact(self, report):
        self.assertGreater(report["outputs_compared"], 100)
        self.assertEqual(report["outputs_different"], 0, report)
        self.assertEqual(report["outputs_nonfinite"], 0, report)
        self.assertEqual(report["fallbacks"], 0, report)
        difference = abs(report["measured_peak_bytes"] - report["predicted_peak_bytes"])
        self.assertLess(difference, 0.001 * report["predicted_peak_bytes"])
        self.assertGreaterEqual(report["arena_bytes"], report["arena_lower_bound_bytes"])

    def plan(self, model):
        """A dtr:eqclass plan at 70 % of the recorded peak."""
        path = os.path.join(self.folder, model + ".plan.json")
        code, out, errors = run(HIGHWATER, "plan", self.session(model), "--planner", "dtr:eqclass", "--ratio", "0.7",
                                "-o", path, "--json")
        self.assertEqual(code, 0, model + ": " + errors)
        return path, json.loads(out)

    def test_captured_order_then_plan(self):
        self.check_captured_order_then_plan("transformer")

    @nightly.nightly
    def test_captured_order_then_plan_of_larger_models(self):
        self.check_captured_order_then_plan("resnet", "lstm")

    def check_captured_order_then_plan(self, *models):
        for model in models:
            session = self.session(model)
            with self.subTest(model):
                plan, planned = self.plan(model)
                self.assertGreater(planned["recomputed_ops"], 0)
                baseline = self.execute(session)
                self.assert_exact(baseline)
                report = self.execute(session, plan)
                self.assert_exact(report)
                self.assertEqual(report["predicted_peak_bytes"], planned["peak_bytes"])
                self.assertLess(report["measured_peak_bytes"], baseline["measured_peak_bytes"])

                database = sqlite3.connect(session)
                runs = database.execute("SELECT plan, measured_peak_bytes FROM runs ORDER BY id").fetchall()
                self.assertEqual(runs[-2:], [(None, baseline["measured_peak_bytes"]),
                                             (runs[-1][0], report["measured_peak_bytes"])])
                self.assertIsNotNone(runs[-1][0])
                self.assertGreater(database.execute("SELECT count(*) FROM signatures").fetchone()[0], 0)
                database.close()

    def test_errors(self):
        plan, _ = self.plan("transformer")
        code, out, errors = run(EXECUTOR, self.session("lstm"), plan, "--json")
        self.assertEqual((code, json.loads(out)["error"]["code"]), (4, 4))
        self.assertTrue(errors.startswith("highwater: error: "), errors)
        for arguments, expected in ((("missing.hws",), 4), ((plan,), 4), ((self.session("lstm"), "missing.json"), 4),
                                    ((self.session("lstm"), "--step", "99"), 4), ((), 2),
                                    ((self.session("lstm"), "--device", "abacus"), 2),
                                    ((self.session("lstm"), "--device", "cuda"), 2)):
            with self.subTest(arguments):
                code, out, errors = run(EXECUTOR, *arguments)
                self.assertEqual((code, out), (expected, ""))
                self.assertIn("highwater: error: ", errors)

    def test_what_cannot_be_replayed_is_named(self):
        session = os.path.join(self.folder, "opaque.hws")
        shutil.copy(self.session("transformer"), session)
        database = sqlite3.connect(session)
        database.execute("UPDATE ops SET args = '{\"a\":[{\"opaque\":\"Storage\"}],\"k\":{}}' WHERE name = 'aten::bmm'")
        database.commit()
        database.close()
        code, _, errors = run(EXECUTOR, session)
        self.assertEqual(code, 4, errors)
        self.assertIn("aten::bmm", errors)

    def test_sizes_that_depend_on_values(self):
        script = os.path.join(self.folder, "masked.py")
        with open(script, "w") as file:
            file.write(MASKED)
        for options, expected in ((), 4), (("--contents",), 0):
            session = os.path.join(self.folder, f"masked{expected}.hws")
            code, _, errors = run(HIGHWATER, "record", "-o", session, "--steps", "1", *options, "--", sys.executable,
                                  script)
            self.assertEqual(code, 0, errors)
            code, out, errors = run(EXECUTOR, session, "--repeat", "1", "--json")
            self.assertEqual(code, expected, errors)
            if expected:
                self.assertRegex(errors, r"returned sizes \[\d+, 64\] where \[\d+, 64\] were captured")
                self.assertRegex(errors, "hint: .*--contents")
            else:
                self.assertEqual(json.loads(out)["outputs_different"], 0, out)

    def test_tensors_upon_foreign_storages(self):
        script, session = os.path.join(self.folder, "foreign.py"), os.path.join(self.folder, "foreign.hws")
        with open(script, "w") as file:
            file.write(FOREIGN)
        code, _, errors = run(HIGHWATER, "record", "-o", session, "--steps", "2", "--", sys.executable, script)
        self.assertEqual(code, 0, errors)
        database = sqlite3.connect(session)
        made = database.execute("SELECT s.creator, s.category FROM storages s JOIN tensors t ON t.storage = s.id "
                                "WHERE t.sizes = '[16,64]' AND s.bytes = 4096 AND s.alloc_seq > "
                                "(SELECT first_seq FROM steps WHERE id = 1) ORDER BY s.id LIMIT 1").fetchone()
        database.close()
        self.assertEqual(made, (None, "input"))
        code, out, errors = run(EXECUTOR, session, "--repeat", "1", "--json")
        self.assertEqual(code, 0, errors)
        report = json.loads(out)
        self.assertEqual(report["outputs_different"], 0, out)
        self.assertEqual(report["measured_peak_bytes"], report["predicted_peak_bytes"])

    def broken(self, path, change):
        """The outcome of running a changed copy of a plan for the Transformer."""
        with open(path) as file:
            document = json.load(file)
        change(document)
        broken = os.path.join(self.folder, "broken.plan.json")
        with open(broken, "w") as file:
            json.dump(document, file)
        code, out, errors = run(EXECUTOR, self.session("transformer"), broken, "--json")
        self.assertNotEqual(code, 0, out)
        self.assertEqual(json.loads(out)["error"]["code"], code)
        return code, errors

    def test_broken_plans_are_refused(self):
        plan, _ = self.plan("transformer")
        laid = os.path.join(self.folder, "laid.plan.json")
        self.execute(self.session("transformer"))  # records what ops allocate
        self.assertEqual(run(HIGHWATER, "layout", self.session("transformer"), plan, "-o", laid)[0], 0)

        def without_recomputation(document):
            document["schedule"] = [entry for entry in document["schedule"] if entry[0] != "r"]

        def wrong_frees(document):  # before the op that they come after
            schedule = document["schedule"]
            for i in range(1, len(schedule)):
                if schedule[i][0] == "f" and schedule[i - 1][0] == "c":
                    schedule[i - 1:i + 1] = schedule[i], schedule[i - 1]

        def unknown_codec(document):
            last = next(entry for entry in reversed(document["schedule"]) if entry[0] == "f")
            at = document["schedule"].index(last)
            document["schedule"][at:at] = [["e", last[1], "zip", 8]]

        def small_arena(document):
            document["layout"]["arena_bytes"] //= 2

        def overlap(document):
            for offsets in document["layout"]["offsets"]:
                offsets[:] = [0] * len(offsets)

        def other_graph(document):
            document["graph"]["fingerprint"] = "sha256:" + "0" * 64

        for change, path, expected, named in ((without_recomputation, plan, 6, "op "), (wrong_frees, plan, 6, "op "),
                                              (unknown_codec, plan, 4, "zip"), (other_graph, plan, 4, "graph"),
                                              (small_arena, laid, 6, "inside the arena"), (overlap, laid, 6, "(op ")):
            with self.subTest(change.__name__):
                code, errors = self.broken(path, change)
                self.assertEqual(code, expected, errors)
                self.assertIn(named, errors)

        truncated = os.path.join(self.folder, "truncated.plan.json")
        with open(plan) as file, open(truncated, "w") as cut:
            cut.write(file.read()[:-2000])
        code, _, errors = run(EXECUTOR, self.session("transformer"), truncated)
        self.assertEqual(code, 4, errors)

    def encoded(self, model, encodings):
        """The codecs of an echo plan, and the report of its run."""
        plan = os.path.join(self.folder, "echo.plan.json")
        code, _, errors = run(HIGHWATER, "plan", self.session(model), "--planner", "echo", "--ratio", "1",
                              "--options", "encodings=" + encodings, "-o", plan)
        self.assertEqual(code, 0, errors)
        with open(plan) as file:
            codecs = {entry[2] for entry in json.load(file)["schedule"] if entry[0] == "e"}
        report = self.execute(self.session(model), plan)
        self.assert_exact(report)
        return codecs, report

    def test_encoded_plans(self):
        codecs, encoded = self.encoded("transformer", "on")
        self.assertIn("mask1", codecs)
        none, plain = self.encoded("transformer", "off")
        self.assertEqual(none, set())
        self.assertLess(encoded["measured_peak_bytes"], plain["measured_peak_bytes"])
        self.assertIn("index32", self.encoded("unet", "on")[0])

    def test_arena_of_other_allocations(self):
        """An arena that is too small for what ops really allocate is told, not hidden, and costs no bit."""
        session, plan = os.path.join(self.folder, "small.hws"), os.path.join(self.folder, "small.plan.json")
        self.execute(self.session("transformer"))  # records what ops allocate
        shutil.copy(self.session("transformer"), session)
        database = sqlite3.connect(session)
        database.execute("UPDATE signatures SET bytes = bytes / 2")
        database.commit()
        database.close()
        code, _, errors = run(HIGHWATER, "plan", session, "--planner", "dtr:eqclass", "--ratio", "0.7", "--layout",
                              "-o", plan)
        self.assertEqual(code, 0, errors)
        report = self.execute(session, plan)
        self.assertGreater(report["fallbacks"], 100)
        self.assertRegex(report["fallback_list"][0]["where"], "^op [0-9]+ ")
        self.assertEqual(report["outputs_different"], 0)
        code, out, errors = run(EXECUTOR, session, plan, "--repeat", "1")
        self.assertEqual(code, 0, errors)
        self.assertRegex(out, "outside the arena +op [0-9]+ ")

    def test_what_the_training_itself_left(self):
        session, plan = os.path.join(self.folder, "contents.hws"), os.path.join(self.folder, "contents.plan.json")
        code, _, errors = run(HIGHWATER, "record", "-o", session, "--steps", "2", "--contents", "--", sys.executable,
                              os.path.join(ROOT, "training", "transformer.py"), "--steps", "3", "--batch", "4",
                              "--width", "64")
        self.assertEqual(code, 0, errors)
        code, _, errors = run(HIGHWATER, "plan", session, "--step", "0", "--planner", "dtr:eqclass", "--ratio", "0.7",
                              "-o", plan)
        self.assertEqual(code, 0, errors)
        report = self.execute(session, plan, "--step", "0")
        self.assertGreater(report["recorded_compared"], 50)
        self.assertEqual(report["recorded_different"], 0, report.get("recorded_first_difference"))
        self.assertEqual(self.execute(session, "--step", "1")["recorded_compared"], 0, "nothing was recorded behind it")

        database = sqlite3.connect(session)
        storage, data = database.execute(
            "SELECT storage, data FROM contents JOIN storages ON storages.id = storage WHERE step = 1 AND"
            " category = 'parameter' AND bytes > 1000 LIMIT 1").fetchone()
        database.execute("UPDATE contents SET data = ? WHERE step = 1 AND storage = ?",
                         (bytes([data[0] ^ 1]) + data[1:], storage))
        database.commit()
        database.close()
        report = self.execute(session, plan, "--step", "0")
        self.assertEqual(report["recorded_different"], 1)
        self.assertIn("parameter of ", report["recorded_first_difference"])

    def test_ops_predicted_beside_measured(self):
        plan, planned = self.plan("transformer")
        report = self.execute(self.session("transformer"), plan)
        self.assertEqual(sum(op["recomputed"] for op in report["ops"]), planned["recomputed_ops"])
        for op in report["ops"]:
            self.assertGreater(op["measured_ns"], 0)
        self.assertGreater(sum(op["recomputation_measured_ns"] for op in report["ops"]), 0)
        database = sqlite3.connect(self.session("transformer"))
        (details,), = database.execute("SELECT details FROM runs ORDER BY id DESC LIMIT 1").fetchall()
        database.close()
        self.assertEqual(json.loads(details)["ops"], report["ops"])

    def test_steps_in_a_row(self):
        plan, _ = self.plan("lstm")
        report = self.execute(self.session("lstm"), plan, "--steps", "4")
        training = report["training"]
        self.assertEqual(len(set(training["losses"])), 4, "parameters are carried on")
        self.assertEqual(training["losses"], training["unplanned_losses"])
        self.assertEqual(training["losses_different"], 0)
        self.assertGreater(training["final_compared"], 20)
        database = sqlite3.connect(self.session("lstm"))
        (first, end), = database.execute("SELECT first_seq, end_seq FROM steps ORDER BY id DESC LIMIT 1").fetchall()
        (parameters,), = database.execute(
            "SELECT count(*) FROM storages WHERE category = 'parameter' AND bytes > 0 AND alloc_seq < ? AND"
            " (free_seq IS NULL OR free_seq >= ?)", (end, end)).fetchall()
        database.close()
        self.assertGreater(parameters, 4)
        self.assertEqual(training["parameters_compared"], parameters)
        self.assertEqual(training["parameters_moved"], parameters)
        self.assertEqual(training["final_different"], 0)

    def test_a_budget_for_the_arena(self):
        session = self.session("lstm")
        self.execute(session)  # records what ops allocate
        plan = os.path.join(self.folder, "arena.plan.json")
        code, out, errors = run(HIGHWATER, "plan", session, "--planner", "dtr:eqclass", "--ratio", "0.6", "--fit",
                                "arena", "-o", plan, "--json")
        self.assertEqual(code, 0, errors)
        planned = json.loads(out)
        report = self.execute(session, plan)
        self.assert_exact(report)
        self.assertEqual(report["arena_bytes"], planned["arena_bytes"])
        self.assertLessEqual(report["arena_bytes"], planned["budget_bytes"])
        self.assertEqual(report["notes"], [])


@unittest.skipUnless(torch2.TORCH2 and glob.glob(EXECUTOR + "-2.*"),
                     "no executor for torch 2.x; enable with: cmake -DHIGHWATER_TORCH=FOLDER/packages/torch")
class Torch2Test(unittest.TestCase):
    def test_a_session_of_torch_2(self):
        with tempfile.TemporaryDirectory() as folder:
            session, plan = os.path.join(folder, "a.hws"), os.path.join(folder, "a.plan.json")
            code, _, errors = run(HIGHWATER, "record", "-o", session, "--steps", "1", "--", torch2.TORCH2,
                                  os.path.join(ROOT, "training", "transformer.py"), "--steps", "2", "--batch", "4",
                                  "--width", "64")
            self.assertEqual(code, 0, errors)
            code, _, errors = run(HIGHWATER, "plan", session, "--planner", "dtr:eqclass", "--ratio", "0.8", "-o", plan)
            self.assertEqual(code, 0, errors)
            code, out, errors = run(HIGHWATER, "run", session, plan, "--repeat", "1", "--steps", "2", "--json")
            self.assertEqual(code, 0, out + errors)
            report = json.loads(out)
            self.assertEqual((report["outputs_different"], report["fallbacks"]), (0, 0), report)
            self.assertEqual(report["training"]["final_different"], 0)
            self.assertLess(abs(report["measured_peak_bytes"] - report["predicted_peak_bytes"]),
                            0.001 * report["predicted_peak_bytes"])

    def test_a_gpu_that_is_not_there(self):
        if os.path.exists("/proc/driver/nvidia/version"):
            self.skipTest("this machine has a driver: see tests/gpu")
        session = glob.glob(os.path.join(ROOT, "..", "sessions", "*.hws"))[0]
        for executor in [EXECUTOR, *glob.glob(EXECUTOR + "-2.*")]:
            code, out, errors = run(executor, session, "--device", "cuda")
            self.assertEqual((code, out), (2, ""), errors)
            self.assertRegex(errors, "highwater: error: .*(GPU|cpu).*\nhint: ")


if __name__ == "__main__":
    if not os.access(EXECUTOR, os.X_OK):
        skip("highwater-exec is not built (install libtorch with scripts/setup, then build)")
    if run(sys.executable, "-c", "import torch, torchvision")[0] != 0:
        skip("torch and torchvision are not installed (scripts/setup)")
    nightly.main()
