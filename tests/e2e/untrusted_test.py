#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A session is data, whoever sent it: what it names is neither started nor opened, and its ops run without rights."""
import json
import os
import shutil
import sqlite3
import subprocess
import unittest

from sessions import BIN, HIGHWATER, InFolder, run, skip

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCHEMA = os.path.join(ROOT, "core", "session", "schema.sql")
SAMPLE = os.path.join(ROOT, "sessions", "transformer.hws")

if not os.path.exists(os.path.join(BIN, "highwater-exec")):
    skip("this build has no executor")


def step(path, ops, storages):
    """A session with one step of these ops (name, overload, arguments, inputs, outputs, writes) on these storages
    (bytes, creator, tensors as (sizes, creator))."""
    database = sqlite3.connect(path)
    with open(SCHEMA) as schema:
        database.executescript(schema.read())
    database.executescript("""
        INSERT INTO processes(id, pid, command, framework, framework_version)
            VALUES(1, 1, '/usr/bin/python3 train.py', 'pytorch', '1.13.0a0');
        INSERT INTO layers VALUES(0, NULL, '(root)', '');
        INSERT INTO steps(id, process, first_seq, end_seq, environment)
            VALUES(0, 1, 1, 99, '{"num_threads":1,"default_dtype":"float32"}');""")
    for op, (name, overload, arguments, inputs, outputs, writes) in enumerate(ops):
        database.execute("INSERT INTO ops(id, seq, name, overload, phase, layer, duration_ns, args)"
                         " VALUES(?, ?, ?, ?, 'forward', 0, 1000, ?)", (op, op + 2, name, overload, json.dumps(arguments)))
        for place, tensor in enumerate(inputs):
            database.execute("INSERT INTO op_inputs VALUES(?, ?, ?, 0)", (op, place, tensor))
        for place, (tensor, makes) in enumerate(outputs):
            database.execute("INSERT INTO op_outputs VALUES(?, ?, ?, ?)", (op, place, tensor, makes))
        for storage in writes:
            database.execute("INSERT INTO op_writes VALUES(?, ?, 0)", (op, storage))
    tensor = 0
    for storage, (size, creator, dtype, tensors) in enumerate(storages):
        database.execute("INSERT INTO storages(id, bytes, device, category, layer, creator, alloc_seq)"
                         " VALUES(?, ?, 'cpu', 'activation', 0, ?, ?)", (storage, size, creator, creator + 2))
        for sizes, maker in tensors:
            database.execute("INSERT INTO tensors VALUES(?, ?, ?, ?, ?, '[1]', 0)", (tensor, storage, maker, dtype,
                                                                                     json.dumps(sizes)))
            tensor += 1
    database.execute("INSERT INTO final_tensors VALUES(0, 0, 0)")
    database.commit()
    database.close()
    return path


class OpsOfASession(InFolder):
    def test_one_that_opens_a_file_is_not_run(self):
        victim = os.path.join(self.folder, "precious")
        with open(victim, "w") as file:
            file.write("precious")
        keywords = {"dtype": {"dtype": "uint8"}, "device": {"device": "cpu"}, "pin_memory": False}
        step(self.session, [
            ("aten::from_file", "", {"a": [victim, True, 8], "k": keywords}, [], [(0, 1)], []),
            ("aten::fill_", "Scalar", {"a": [{"t": 0}, 65], "k": {}}, [0], [(0, 0)], [0])],
            [(8, 0, "uint8", [([8], 0)])])
        code, _, errors = run("run", self.session)
        self.assertEqual(code, 4, errors)
        self.assertIn("aten::from_file reaches files or memory beyond its arguments", errors)
        with open(victim) as file:
            self.assertEqual(file.read(), "precious")

    def test_a_view_beyond_its_storage_is_not_written(self):
        step(self.session, [
            ("aten::zeros", "", {"a": [[4]], "k": {"device": {"device": "cpu"}, "pin_memory": False}}, [], [(0, 1)], []),
            ("aten::_reshape_alias", "", {"a": [{"t": 0}, [400000000], [1]], "k": {}}, [0], [(1, 0)], []),
            ("aten::fill_", "Scalar", {"a": [{"t": 1}, 65], "k": {}}, [1], [(1, 0)], [0])],
            [(16, 0, "float32", [([4], 0), ([400000000], 1)])])
        code, _, errors = run("run", self.session)
        self.assertEqual(code, 4, errors)
        self.assertRegex(errors, r"_reshape_alias\) returned a tensor that is larger than its storage")

    def test_those_of_an_extension_run_if_its_module_is_named(self):
        system = "/usr/bin/python3"
        if subprocess.run([system, "-c", "import torchvision"], capture_output=True).returncode != 0:
            self.skipTest("there is no torchvision: scripts/setup installs it")
        training = self.script("""
            import torch, torchvision
            features = torch.nn.Conv2d(3, 8, 3)
            optimizer = torch.optim.SGD(features.parameters(), lr=0.1)
            boxes = torch.tensor([[0, 1.0, 1.0, 9.0, 9.0], [1, 2.0, 2.0, 12.0, 8.0]])
            for _ in range(3):
                optimizer.zero_grad()
                torchvision.ops.roi_align(features(torch.randn(2, 3, 16, 16)), boxes, 4).square().mean().backward()
                optimizer.step()
            """)
        code, _, errors = run("record", "-o", self.session, "--steps", "2", "--", system, training)
        self.assertEqual(code, 0, errors)
        code, _, errors = run("run", self.session)
        self.assertEqual(code, 4, errors)
        self.assertRegex(errors, r"torchvision::\w+ is an op of an extension, which is not loaded\nhint: .*--import MODULE")
        code, out, errors = run("run", self.session, "--import", "torchvision", "--python", system, "--json")
        self.assertEqual(code, 0, errors)
        told = json.loads(out)
        self.assertGreater(told["outputs_compared"], 0)
        self.assertEqual(told["outputs_different"], 0)
        code, _, errors = run("run", self.session, "--import", "no_such_module", "--python", system)
        self.assertEqual(code, 5, errors)
        self.assertIn("No module named 'no_such_module'", errors)

    def test_they_run_without_rights_and_the_session_keeps_the_run(self):
        shutil.copy(SAMPLE, self.session)
        code, out, errors = run("run", self.session, "--repeat", "1", "--json")
        self.assertEqual(code, 0, errors)
        code, found, errors = run("doctor", "--json")
        sandbox = [part["state"] for part in json.loads(found)["parts"] if part["part"] == "sandbox"]
        with_rights = [note for note in json.loads(out)["notes"] if "rights" in note]
        self.assertEqual((sandbox, len(with_rights)), (["ok"], 0) if sandbox == ["ok"] else (["limited"], 1))
        with sqlite3.connect(self.session) as database:
            kept = database.execute("SELECT details FROM runs ORDER BY id").fetchall()
        self.assertEqual(json.loads(kept[-1][0]), json.loads(out))

    def test_what_the_run_comes_to_is_printed_where_nothing_can_be_kept(self):
        shutil.copy(SAMPLE, self.session)
        holder = sqlite3.connect(self.session)
        holder.execute("BEGIN")
        holder.execute("SELECT count(*) FROM steps").fetchone()
        os.chmod(self.session, 0o444)
        if os.access(self.session, os.W_OK):
            self.skipTest("root may write to everything")
        code, out, errors = run("run", self.session, "--repeat", "1", "--json")
        self.assertEqual(code, 0, errors)
        self.assertIn("the session cannot be written", " ".join(json.loads(out)["notes"]))


class ProgramsThatASessionNames(InFolder):
    """A folder that came by mail: a session, and programs that it names."""

    def setUp(self):
        super().setUp()
        shutil.copy(SAMPLE, self.session)
        self.trace = os.path.join(self.folder, "started")
        self.python = self.script(f"#!/bin/sh\necho \"$0 $*\" >>{self.trace}\necho\n", "python3")
        os.chmod(self.python, 0o755)
        package = os.path.join(self.folder, "torch")
        os.makedirs(package)
        with open(os.path.join(package, "__init__.py"), "w") as file:
            file.write(f"open({self.trace!r}, 'a').write('imported')\n")
        with open(os.path.join(package, "version.py"), "w") as file:
            file.write("__version__ = '9.8.7'\n")

    def name(self, python):
        with sqlite3.connect(self.session) as database:
            database.execute("UPDATE processes SET framework_version = '9.8.7', command = ?", (python + " train.py",))
            database.execute("UPDATE steps SET environment = json_set(environment, '$.torch_package', ?)",
                             (os.path.join(self.folder, "torch"),))

    def expect_nothing_started(self, *command):
        done = subprocess.run([HIGHWATER, *command], cwd=self.folder, capture_output=True, text=True, timeout=600,
                              env={**os.environ, "QT_QPA_PLATFORM": "offscreen",
                                   "XDG_STATE_HOME": os.path.join(self.folder, "state")})
        self.assertFalse(os.path.exists(self.trace), command)
        return done

    def test_are_not_started(self):
        for python in ("./python3", "python3", self.python):
            self.name(python)
            for command in (["run", "--check", self.session], ["info", self.session],
                            ["shot", self.session, "--view", "compare", "-o", os.path.join(self.folder, "x.png")],
                            ["export", self.session, "--to", "csv", "-o", os.path.join(self.folder, "csv" + str(len(python)))]):
                self.expect_nothing_started(*command)

    def test_are_named_and_can_be_asked_for(self):
        self.name(self.python)
        done = self.expect_nothing_started("run", "--check", self.session, "--json")
        self.assertEqual(json.loads(done.stdout)["session_names"], self.python)
        run("run", self.session, "--python", self.python)
        with open(self.trace) as file:
            self.assertIn(self.python, file.read())


if __name__ == "__main__":
    unittest.main()
