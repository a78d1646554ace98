#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Programs whose input sizes vary, within a number of bytes: the same lines as alone, never above it, and a plan for
each size that has come by."""
import json
import os
import unittest
import unittest.mock

import budget_test
import nightly
from torch2 import TORCH2, needs_torch2
from train_test import BEGIN

WAIT = """
    import os, time
    torch.set_num_threads(1)
    def wait(): time.sleep(0.4 if os.environ.get("SLOW") else 0)
    """

# Batches of a few lengths, an evaluation now and then, and one length that comes once.
ATTENTION = BEGIN + WAIT + """
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.heads = nn.LayerNorm(48), nn.Linear(48, 144)
            self.wide, self.narrow, self.drop = nn.Linear(48, 192), nn.Linear(192, 48), nn.Dropout(0.1)
        def forward(self, x):
            q, k, v = self.heads(self.norm(x)).chunk(3, -1)
            x = x + self.drop(torch.softmax(q @ k.transpose(1, 2), -1)) @ v
            return x + self.narrow(torch.relu(self.wide(x)))
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.blocks, self.head = nn.Embedding(50, 48), nn.ModuleList(Block() for _ in range(5)), nn.Linear(48, 4)
        def forward(self, x):
            x = self.words(x)
            for block in self.blocks: x = block(x)
            return self.head(x.mean(1))
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(40):
        n = 77 if step == 30 else (20, 96, 40, 64)[int(torch.randint(4, ()))]
        x = torch.randint(50, (8, n))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), x.sum(1) % 4)
        loss.backward()
        optimizer.step()
        print("step", step, n, loss.item().hex())
        if step in (5, 20):
            with torch.no_grad(): print("eval", model(torch.randint(50, (8, 33))).sum().item().hex())
        wait()
    digest([model], [optimizer])
    """

# As many cells as the sequence is long, so that no two lengths have the same ops.
RECURRENT = BEGIN + WAIT + """
    cell, head = nn.LSTMCell(16, 64), nn.Linear(64, 4)
    optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1, momentum=0.9)
    for step in range(36):
        x = torch.randn((12, 30, 20)[int(torch.randint(3, ()))], 96, 16)
        h, c, outs = torch.zeros(96, 64), torch.zeros(96, 64), []
        for each in x:
            h, c = cell(each, (h, c))
            outs.append(head(h))
        loss = torch.stack(outs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("step", step, len(x), loss.item().hex())
        del h, c, outs
        wait()
    digest([cell, head], [optimizer])
    """


class BudgetSizes(budget_test.Budget):
    def vary(self, program, ratio, *options):
        script, plain, peak = self.alone(program)
        budget = int(ratio * peak)
        progress = os.path.join(self.folder, "progress.jsonl")
        with unittest.mock.patch.dict(os.environ, {"SLOW": "1"}):
            done, report = self.train(script, "--budget", str(budget), "--progress", progress, *options)
        self.assertEqual((done.returncode, done.stdout), (0, plain), done.stderr)
        self.assertLessEqual(report["measured_peak_bytes"], budget)
        modes = report["modes"]
        self.assertEqual(sum(modes.values()), report["steps"])
        self.assertEqual(modes["none"], 0)
        with open(progress) as file:
            told = [event["mode"] for event in map(json.loads, file) if event["event"] == "step"]
        self.assertEqual({mode: told.count(mode) for mode in modes}, modes)
        return modes, done.stderr

    def test_each_size_gets_its_plan(self):
        modes, said = self.vary(ATTENTION, 0.75, "--planner", "mimose")
        self.assertIn("'mimose' plans by input size", said)
        self.assertGreater(modes["mimose"], 0)
        self.assertGreater(modes["dtr"], 3)  # the collection phase at least
        self.assertEqual(modes["plan"], 0)
        self.assertIn("under Mimose's for their size", said)

    @nightly.nightly
    def test_better_plans_for_sizes_that_come_often(self):
        modes, _ = self.vary(ATTENTION, 0.75)
        self.assertGreater(modes["mimose"] + modes["plan"], 0)

    @nightly.nightly
    def test_lengths_with_ops_of_their_own(self):
        modes, _ = self.vary(RECURRENT, 0.75, "--planner", "mimose")
        self.assertGreater(modes["mimose"], 0)

    @nightly.nightly
    def test_another_planner_stays_the_only_one(self):
        modes, _ = self.vary(RECURRENT, 0.75, "--planner", "chen-sqrt")
        self.assertEqual(modes["mimose"], 0)


@needs_torch2
class BudgetSizesWithTorch2(BudgetSizes):
    python = TORCH2
    # The framework has no part in which planner is asked.
    test_another_planner_stays_the_only_one = test_better_plans_for_sizes_that_come_often = None


def load_tests(loader, _, __):
    """Those of this file, not of the class that they build upon."""
    suite = unittest.TestSuite()
    for case in (BudgetSizes, BudgetSizesWithTorch2):
        own = [name for name in loader.getTestCaseNames(case) if name in vars(BudgetSizes)]
        suite.addTests(map(case, own))
    return suite


if __name__ == "__main__":
    nightly.main()
