#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Two ranks of FSDP2: parameters that are gathered before they are used, and whose bytes go again afterwards."""
import json
import os
import unittest

from ranks_test import free_port
from sessions import HIGHWATER, InFolder, run
from torch2 import TORCH2, needs_torch2

TRAIN = """
import sys, torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 256)) for _ in range(4)])
for block in model:
    fully_shard(block)
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
torch.manual_seed(rank)
lines = []
for step in range(5):
    optimizer.zero_grad()
    loss = model(torch.randn(64, 256)).pow(2).mean()
    loss.backward()
    optimizer.step()
    lines.append(loss.item().hex())
open(sys.argv[1] + str(rank), "w").write(repr(lines))
dist.destroy_process_group()
"""
WIDE = TRAIN.replace("randn(64, ", "randn(1024, ")  # more activations than parameters
PARAMETERS = 4 * 4 * (256 * 512 + 512 + 512 * 256 + 256)  # bytes of all


@needs_torch2
class FullyShard(InFolder):
    def train(self, *highwater):
        return self.lines_of(*highwater, TORCH2, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port",
                             free_port(), self.script(TRAIN))

    def test_gathered_parameters_come_and_go(self):
        alone = self.train()
        self.assertEqual(self.train(HIGHWATER, "record", "--steps", "2", "-o", self.session, "--"), alone)
        ranks = json.loads(run("info", "--json", self.session)[1])["ranks"]
        self.assertEqual([len(rank["steps"]) for rank in ranks], [2, 2])
        for rank in ranks:
            info = json.loads(run("info", "--json", "--step", rank["steps"][-1], self.session)[1])
            self.assertEqual({use["operation"] for use in info["collectives"]}, {"all-gather", "reduce-scatter"})
            recorded = self.query("SELECT allocator_peak_bytes FROM steps WHERE id = %d" % rank["steps"][-1])[0][0]
            self.assertAlmostEqual(info["baseline"]["peak_bytes"] / recorded, 1, delta=0.03)
            # Half of the parameters are here all the time; what is gathered comes and goes.
            self.assertAlmostEqual(info["categories"]["parameter"] / PARAMETERS, 0.5, delta=0.01)
            self.assertAlmostEqual(info["categories"]["optimizer state"] / PARAMETERS, 1, delta=0.01)
        gathered = self.query("SELECT id >> 40, COUNT(*) FROM storages WHERE category = 'gathered parameter' AND creator IS NULL"
                              " AND free_seq IS NOT NULL GROUP BY 1")
        self.assertEqual([rank for rank, count in gathered if count >= 2 * 2 * 4], [0, 1])  # steps, passes, blocks

    def test_what_was_made_from_gathered_parameters_is_made_before_they_go(self):
        """Their bytes go and come back in place, by no op: recomputed from others, losses would be others."""
        train = (TORCH2, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port", free_port(), self.script(WIDE))
        alone = self.lines_of(*train)
        self.assertEqual(self.lines_of(HIGHWATER, "record", "--steps", "2", "-o", self.session, "--", *train), alone)
        peak = json.loads(run("info", "--json", self.session)[1])["baseline"]["peak_bytes"]
        within = self.lines_of(HIGHWATER, "train", "--budget", str(int(0.88 * peak)), "--planner", "dtr:eqclass", "--report",
                               os.path.join(self.folder, "report.json"), "--", *train)
        self.assertEqual(within, alone)
        with open(os.path.join(self.folder, "report.json")) as file:
            told = json.load(file)
        self.assertGreater(told["evictions"], 0)
        self.assertLessEqual(told["measured_peak_bytes"], 0.88 * peak)
        plans = os.path.join(self.folder, "plans")
        self.assertEqual(run("plan", self.session, "--ranks", "all", "--ratio", "0.85", "--planner", "highwater", "--time-limit",
                             "3", "-o", plans)[0], 0)
        report = os.path.join(self.folder, "planned.json")
        self.assertEqual(self.lines_of(HIGHWATER, "train", self.session, plans, "--report", report, "--", *train), alone)
        with open(report) as file:
            for rank in json.load(file)["ranks"]:
                self.assertGreaterEqual(rank["steps_planned"], 3)
                self.assertAlmostEqual(rank["step_peaks_bytes"][-1] / rank["predicted_peak_bytes"], 1, delta=1e-3)


if __name__ == "__main__":
    unittest.main(verbosity=2)
