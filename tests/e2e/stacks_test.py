#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Call stacks of recorded ops: which line is named, in both ways of capture, and what they must not change."""
import json
import os
import sqlite3
import subprocess
import sys
import unittest

from record_test import HIGHWATER, PYTHON, Recording
from torch2 import TORCH2, needs_torch2

PROGRAM = """
import sys, threading, torch
torch.manual_seed(0)
torch.set_num_threads(1)

class Half(torch.autograd.Function):
    @staticmethod
    def forward(context, value):
        return value * 0.5          # line: half
    @staticmethod
    def backward(context, gradient):
        return gradient * 0.5

def deep(value, left):
    if left:
        return deep(value, left - 1)
    return value.exp()              # line: deep

def pieces(value):
    for piece in value.chunk(2):
        yield piece.sigmoid()       # line: generator

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 64)
    def forward(self, value):
        value = self.linear(value)  # line: linear
        value = Half.apply(value)
        value = torch.cat(list(pieces(value)))
        return deep(value, 600)

def train():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        optimizer.zero_grad()       # line: zero
        loss = model(torch.ones(64, 8)).mean()
        loss.backward()
        optimizer.step()            # line: step
        print(step, loss.item().hex(), flush=True)

if sys.argv[1] == "thread":
    worker = threading.Thread(target=train)
    worker.start()
    worker.join()
else:
    train()
"""
LINES = {line.rpartition("# line: ")[2]: number
         for number, line in enumerate(PROGRAM.splitlines(), 1) if "# line: " in line}


class OneProgram(Recording):
    python = PYTHON

    def setUp(self):
        super().setUp()
        self.program = self.script(PROGRAM)

    def record_program(self, *options, way="", where="main"):
        environment = {**os.environ, "HIGHWATER_CAPTURE": way} if way else None
        command = (self.python, self.program, where)
        _, output = self.recorded(*command, options=("--steps", "1", "--warmup", "1", *options),
                                  environment=environment)
        return command, output

    def lines(self):
        """(op, phase) -> the lines of this program that are innermost in its stacks."""
        session = sqlite3.connect(self.session)
        parents = {id: (parent, frame) for id, parent, frame in session.execute("SELECT * FROM stacks")}
        frames = {id: rest for id, *rest in session.execute("SELECT * FROM source_frames")}
        found = {}
        for name, phase, stack in session.execute(
                "SELECT name, phase, stack FROM ops LEFT JOIN op_stacks ON op = id"):
            while stack is not None and frames[parents[stack][1]][3]:
                stack = parents[stack][0]
            line = None if stack is None else frames[parents[stack][1]][2]
            found.setdefault((name.rpartition("::")[2], phase), set()).add(line)
        session.close()
        return found

    def check(self, **how):
        command, output = self.record_program(**how)
        plain = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        for line in plain.stdout.splitlines():  # bit by bit the same losses
            self.assertIn(line, output)
        lines = self.lines()
        self.assertEqual(lines["exp", "forward"], {LINES["deep"]})
        self.assertEqual(lines["sigmoid", "forward"], {LINES["generator"]})
        self.assertEqual(lines["addmm", "forward"], {LINES["linear"]})
        self.assertEqual(lines["sigmoid_backward", "backward"], {LINES["generator"]}, "of the op whose gradient it is")
        self.assertEqual(lines["mm", "backward"], {LINES["linear"]})
        self.assertIn(LINES["half"], lines["mul", "forward"])
        updates = {line for (_, phase), found in lines.items() if phase == "optimizer" for line in found}
        self.assertEqual(updates - {LINES["zero"]}, {LINES["step"]})


class Stacks(OneProgram):
    def test_the_line_of_every_op_is_known(self):
        self.check()
        told = json.loads(subprocess.run([HIGHWATER, "info", "--by", "line", "--json", self.session],
                                         capture_output=True, text=True, check=True).stdout)
        groups = {group["line"]: group for group in told["groups"] if "line" in group}
        self.assertTrue(told["stacks"])
        self.assertEqual(told["peak_bytes"], sum(group["peak_bytes"] for group in told["groups"]))
        self.assertEqual(groups[LINES["deep"]]["file"], self.program)
        self.assertEqual(groups[LINES["deep"]]["function"], "deep")
        self.assertEqual(groups[LINES["deep"]]["saved_bytes"], 64 * 64 * 4)

    def test_in_another_thread(self):
        self.check(where="thread")

    def test_through_python(self):
        self.check(way="python")

    def test_a_line_is_all_that_is_kept_where_it_is_asked_for(self):
        self.record_program("--stacks", "line")
        session = sqlite3.connect(self.session)
        files = {file for file, in session.execute("SELECT DISTINCT file FROM source_frames")}
        parents = {parent for parent, in session.execute("SELECT DISTINCT parent FROM stacks")}
        session.close()
        self.assertEqual(files, {self.program})
        self.assertEqual(parents, {None})
        self.assertEqual(self.lines()["exp", "forward"], {LINES["deep"]})

    def test_none_are_kept_where_they_are_off(self):
        self.record_program("--stacks", "off")
        session = sqlite3.connect(self.session)
        for table in ("source_frames", "stacks", "op_stacks"):
            self.assertEqual(session.execute("SELECT count(*) FROM " + table).fetchone(), (0,))
        session.close()


@needs_torch2
class StacksOfTorch2(OneProgram):
    python = TORCH2

    def test_the_line_of_every_op_is_known(self):
        self.check()


if __name__ == "__main__":
    if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode:
        print("skipped: torch is missing; install python3-torch")
        sys.exit(77)
    unittest.main(verbosity=2)
