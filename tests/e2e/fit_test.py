#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How large a batch fits: records of a training at small sizes tell what larger ones need."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

from sessions import HIGHWATER, InFolder, run, skip

TRAINING = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "training")


def ask(*arguments):
    code, out, errors = run(*arguments, "--json")
    assert code == 0, errors
    return json.loads(out)


def record(session, script, *options):
    code, _, errors = run("record", "-o", session, "--steps", 2, "--warmup", 1, "--", sys.executable,
                          os.path.join(TRAINING, script), "--steps", 4, *options)
    assert code == 0, errors
    return session


class FitTest(InFolder):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.sessions = {batch: record(os.path.join(folder.name, f"gpt{batch}.hws"), "gpt.py", "--layers", 2,
                                      "--batch", batch) for batch in (2, 3, 4, 16)}
        cls.other = record(os.path.join(folder.name, "lstm.hws"), "lstm.py", "--batch", 8)

    def sgd_or(self, optimizer, batch):
        script = self.script(f"""
            import torch
            model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8))
            optimizer = torch.optim.{optimizer}(model.parameters(), lr=0.01)
            for step in range(4):
                optimizer.zero_grad()
                model(torch.randn({batch}, 64)).square().mean().backward()
                optimizer.step()
            """)
        session = os.path.join(self.folder, f"{optimizer}{batch}.hws")
        code, _, errors = run("record", "-o", session, "--", sys.executable, script)
        self.assertEqual(code, 0, errors)
        return session

    def test_other_sizes_are_as_recorded(self):
        a, b = self.sessions[2], self.sessions[4]
        for batch in (2, 3, 4, 16):
            with self.subTest(batch):
                real = ask("info", self.sessions[batch])
                made = ask("fit", a, b, "--batch", batch)
                self.assertEqual(made["sizes"], [2, 4])
                self.assertEqual(made["batch_shape"][0], 2)
                self.assertEqual(made["extrapolated"], batch == 16)
                self.assertIsNone(made["error"], "too few records to leave one out")
                for key in ("peak_bytes", "constant_bytes", "bottleneck_bytes"):
                    recorded = real["baseline"][key]
                    self.assertLess(abs(made["baseline"][key] / recorded - 1), 0.005, key)
                self.assertEqual(made["categories"].keys(), real["categories"].keys())
                if made["extrapolated"]:
                    self.assertNotEqual(made["items_per_second"], 0)
                else:
                    self.assertGreater(made["items_per_second"], 0)

    def test_records_left_out_tell_the_error(self):
        made = ask("fit", *(self.sessions[batch] for batch in (4, 2, 16)), "--batch", 8)
        self.assertEqual(made["sizes"], [2, 4, 16])
        self.assertLess(made["error"]["peak"], 0.005)
        self.assertEqual([row["batch"] for row in made["error"]["records"]], [2, 4, 16])
        code, out, errors = run("fit", *self.sessions.values(), "--batch", 8)
        self.assertEqual(code, 0, errors)
        self.assertEqual(out.count("from the others: peak"), 4)

    def test_largest_batch(self):
        a, b = self.sessions[2], self.sessions[4]
        budget = ask("info", b)["baseline"]["peak_bytes"]
        names = ["none", "chen-greedy", "highwater", "dtr:eqclass"]
        made = ask("fit", a, b, "--budget", budget, "--planners", ",".join(names), "--time-limit", 3)
        self.assertEqual([row["planner"] for row in made["rows"]], names)
        best = {row["planner"]: row["batch"] for row in made["rows"]}
        self.assertEqual(best["none"], 4)
        self.assertGreater(best["highwater"], 4)
        self.assertEqual(best["highwater"], max(best.values()))
        for row in made["rows"]:
            self.assertEqual(row["status"], "ok")
            self.assertLessEqual(row["peak_bytes"], budget)
            self.assertEqual(row["tried"][-1]["batch"], row["batch"])
            told = [each["items_per_second"] for each in row["tried"] if each["items_per_second"] is not None]
            self.assertEqual(max(told, default=None), row["fastest_items_per_second"])
            if row["items_per_second"] is not None:  # as where both records take as long, but for noise
                self.assertAlmostEqual(row["items_per_second"], row["batch"] / row["time_ns"] * 1e9, places=3)
        alike = ask("fit", a, b, "--device-memory", budget + 1000, "--besides", 1000, "--planners", "none")
        self.assertEqual((alike["budget_bytes"], alike["rows"][0]["batch"]), (budget, 4))
        # What the planners need at least for a batch that does not fit alone.
        made = ask("fit", a, b, "--batch", 8, "--planners", "dtr:eqclass")
        self.assertLess(made["rows"][0]["peak_bytes"], made["baseline"]["peak_bytes"])

    def forms(self, session):
        """How each input of the last step's ops lies in memory."""
        self.session = session
        return self.query("SELECT o.name, i.position, t.dtype, t.sizes, t.strides, t.offset FROM ops o JOIN op_inputs i"
                          " ON i.op = o.id JOIN tensors t ON t.id = i.tensor JOIN steps s ON o.seq >= s.first_seq AND"
                          " o.seq < s.end_seq WHERE s.id = (SELECT max(id) FROM steps) ORDER BY o.seq, i.position")

    def test_a_size_is_written_as_a_session(self):
        at = os.path.join(self.folder, "at16.hws")
        made = ask("fit", self.sessions[2], self.sessions[4], "--batch", 16, "-o", at)
        told, real = ask("info", at), ask("info", self.sessions[16])
        self.assertEqual(told["predicted"]["size"], 16)
        self.assertEqual(told["predicted"]["from"], [self.sessions[2], self.sessions[4]])
        self.assertIsNone(real["predicted"])
        self.assertEqual(told["fingerprint"], made["fingerprint"])
        # Not the fingerprint: buffers are numbered in the order in which Python's collector lists them.
        self.assertEqual([told[key] for key in ("ops", "storages", "tensors")], [real[key] for key in ("ops", "storages", "tensors")])
        self.assertEqual([[*row[:3], *map(json.loads, row[3:5]), row[5]] for row in self.forms(at)],
                         [[*row[:3], *map(json.loads, row[3:5]), row[5]] for row in self.forms(self.sessions[16])])
        code, _, errors = run("fit", self.sessions[2], self.sessions[4], "--batch", 16, "-o", at)
        self.assertEqual((code, "exists already" in errors), (4, True), errors)
        code, _, errors = run("run", at)
        self.assertEqual((code, "never recorded" in errors), (4, True), errors)

    def test_a_batch_that_does_not_fit_is_trained_under_its_plan(self):
        for name, batch, *options in (("gpt.py", 2, "--layers", "2"), ("unet.py", 8, "--size", "32")):
            with self.subTest(name):
                self.train_the_largest(name, batch, lambda size: [sys.executable, os.path.join(TRAINING, name), *options,
                                                                  "--steps", "3", "--batch", str(size)])

    def train_the_largest(self, name, batch, training):
        """From records of that batch and twice it, within twice what the larger one takes."""
        small, large, at, plan, report = [os.path.join(self.folder, name + end)
                                          for end in ("1.hws", "2.hws", ".hws", ".plan.json", ".json")]
        # With the first step, which makes the optimizer's states.
        for session, batch in ((small, batch), (large, 2 * batch)):
            code, _, errors = run("record", "-o", session, "--steps", 3, "--", *training(batch))
            self.assertEqual(code, 0, errors)
        budget = 2 * ask("info", large)["baseline"]["peak_bytes"]
        made = ask("fit", small, large, "--budget", budget, "--planners", "highwater", "--time-limit", 3, "-o", at,
                   "--plan", plan)
        row = made["rows"][0]
        self.assertEqual(made["written"], {"batch": row["batch"], "session": at, "plan": plan, "planner": "highwater"})
        self.assertGreater(row["batch"], batch)
        program = training(row["batch"])
        cap = budget + budget // 1000  # as near to the prediction as a measured peak has to be
        plain = subprocess.run(program, capture_output=True, text=True, check=True).stdout
        code, out, errors = run("train", "--cap", cap, "--", *program)
        self.assertNotEqual(code, 0)
        self.assertIn("allocate", errors)
        code, out, errors = run("train", at, plan, "--cap", cap, "--report", report, "--", *program)
        self.assertEqual((code, out), (0, plain), errors)
        with open(report) as file:
            told = json.load(file)
        self.assertEqual(told["steps_planned"], 3)
        self.assertLess(told["measured_peak_bytes"], budget * 1.001)

    def test_sizes_of_one_session(self):
        session = os.path.join(self.folder, "varying.hws")
        code, _, errors = run("record", "-o", session, "--steps", 6, "--warmup", 1, "--", sys.executable,
                              os.path.join(TRAINING, "varying_transformer.py"), "--steps", 8)
        self.assertEqual(code, 0, errors)
        made = ask("fit", session, "--batch", 64)
        self.assertGreaterEqual(len(made["sizes"]), 3)
        self.assertEqual(made["dimension"], 1, "the sequence")
        if made["error"]:
            self.assertLess(made["error"]["peak"], 0.02)

    def test_no_family(self):
        a, b = self.sessions[2], self.sessions[4]
        for what, arguments, expected in (
                ("op 0|op 1", (a, self.other, "--batch", 8), 4),
                ("one size only", (a, a, "--batch", 8), 4),
                ("one size only", (a, "--batch", 8), 4),
                ("not records of the same step: op", (self.sgd_or("SGD", 8), self.sgd_or("Adam", 16), "--batch", 8), 4),
                ("no file", (a, os.path.join(self.folder, "none.hws"), "--batch", 8), 4),
                ("exactly one of", (a, b), 2),
                ("exactly one of", (a, b, "--batch", 8, "--budget", "1GB"), 2),
                ("at least 1", (a, b, "--batch", 0), 2),
                ("no planner", (a, b, "--budget", "1GB", "--planners", "nobody"), 2),
                ("--plan with --batch needs", (a, b, "--batch", 8, "--plan", "p.plan.json"), 2),
                ("no size", (a, b, "--budget", "much"), 2),
                ("dimension 1", (a, b, "--batch", 8, "--vary", 1), 2),
                ("leaves nothing", (a, b, "--device-memory", "1GB", "--besides", "1GB"), 2),
                ("not even size 1", (a, b, "--budget", "10kB", "--planners", "none,highwater"), 3)):
            with self.subTest(what):
                code, out, errors = run("fit", *arguments)
                self.assertEqual(code, expected, errors)
                self.assertRegex(errors, f"highwater: error: .*({what}).*\nhint: ")
                self.assertEqual(errors.count("\n"), 2)
        code, out, _ = run("fit", a, b, "--budget", "10kB", "--planners", "none", "--json")
        self.assertEqual((code, json.loads(out)["rows"][0]["batch"]), (3, None))


if __name__ == "__main__":
    if not os.access(HIGHWATER, os.X_OK):
        skip("highwater is not built")
    if subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode != 0:
        skip("torch is not installed (scripts/setup)")
    unittest.main()
