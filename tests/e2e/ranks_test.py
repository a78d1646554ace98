#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Records two ranks of one training, started by torchrun, into one session; inputs vary in length."""
import json
import os
import re
import socket
import subprocess
import time

import nightly
import train_test
from sessions import InFolder
from torch2 import TORCH2, needs_torch2

HIGHWATER = os.path.join(os.environ.get("HIGHWATER_BIN", "build/release/bin"), "highwater")


def free_port():
    """Nobody listens there; another one each time, as one that was just closed may not be free yet."""
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        return str(listener.getsockname()[1])


TRAIN = """
import os, sys, time, torch
import torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.Tanh(), torch.nn.Linear(64, 8))
model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(int(sys.argv[1])):
    length = 64 * (1 + step % int(sys.argv[4])) * (1 + rank)
    optimizer.zero_grad()
    loss = model(torch.randn(2, length, 8)).pow(2).mean()
    loss.backward()
    optimizer.step()
    if step == 1:
        open(sys.argv[2] + str(rank), "w").write(str(os.getpid()))
    time.sleep(float(sys.argv[3]))
print("rank", rank, "loss", loss.item().hex(), flush=True)
dist.destroy_process_group()
"""

# Ranks without torchrun, started by a process that has torch and does not train.
SPAWN = """
import sys, torch
def train(rank):
    torch.manual_seed(rank)
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.Tanh(), torch.nn.Linear(256, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with open(sys.argv[1] + str(rank), "w") as lines:
        for step in range(5):
            optimizer.zero_grad()
            loss = model(torch.randn(32 * (1 + rank), 64)).square().mean()
            loss.backward()
            optimizer.step()
            print(step, loss.item().hex(), file=lines)
if __name__ == "__main__":
    torch.multiprocessing.spawn(train, nprocs=2)
"""

# Written in Python, and without torch: it starts whoever trains.
LAUNCHER = """
import subprocess, sys
subprocess.run(["git", "--version"], stdout=subprocess.DEVNULL)
sys.exit(subprocess.call(sys.argv[1:]))
"""

# Each rank writes what it came to into a file of its own: lines of several processes may run into each other.
DEEP = """
import hashlib, os, sys, torch
import torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank)
layers = []
for _ in range(8):
    layers += [torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Dropout(0.1), torch.nn.Linear(256, 64), torch.nn.LayerNorm(64)]
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
lines = []
for step in range(6):
    optimizer.zero_grad()
    loss = model(torch.randn(512 * (1 + rank), 64)).pow(2).mean()
    loss.backward()
    optimizer.step()
    lines.append(loss.item().hex())
lines.append(hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest())
open(sys.argv[1] + str(rank), "w").write(repr(lines))
dist.destroy_process_group()
"""


class Ranks(InFolder):
    python = "/usr/bin/python3"
    # Debian's torchrun fails on Python 3.11 for want of a name for "no redirection".
    options = ("--redirects", "1", "--tee", "1")

    def setUp(self):
        super().setUp()
        self.train = self.script(TRAIN)

    def torchrun(self, steps, pause):
        return self.run_ranks(self.train, str(steps), os.path.join(self.folder, "rank"), str(pause), "4")

    def run_ranks(self, *script):
        return (self.python, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_port", free_port(), *self.options,
                *script)

    def told(self, *command):
        done = subprocess.run([HIGHWATER, *command], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def check(self, steps):
        """Each rank has its own steps, which can be planned; inputs of each length have their own peak."""
        info = json.loads(self.told("info", "--json", self.session).stdout)
        self.assertEqual([(rank["rank"], len(rank["steps"])) for rank in info["ranks"]], [(0, steps), (1, steps)])
        self.assertNotEqual(info["ranks"][0]["pid"], info["ranks"][1]["pid"])
        self.assertIn("rank 1: process", self.told("info", self.session).stdout)
        self.assertEqual([count for _, count in self.query("SELECT path, COUNT(*) FROM layers GROUP BY path")
                          if count > 1], [])
        of_rank = {rank["rank"]: [json.loads(self.told("info", "--json", "--step", str(step), self.session).stdout)
                                  for step in rank["steps"]] for rank in info["ranks"]}
        for zero, one in zip(of_rank[0], of_rank[1], strict=True):
            self.assertEqual(zero["ops"], one["ops"])
            self.assertEqual(zero["categories"]["parameter"], one["categories"]["parameter"])
            self.assertGreater(one["categories"]["activation"], 1.9 * zero["categories"]["activation"])
        # No tensor of one rank is an argument, or alive in a step, of the other.
        self.assertEqual(self.query("SELECT COUNT(*) FROM op_inputs JOIN tensors ON tensors.id = tensor"
                                    " WHERE op >> 40 <> storage >> 40"), [(0,)])
        for op, args in self.query("SELECT id, args FROM ops WHERE id >> 40 = 1 AND args LIKE '%{\"t\":%' LIMIT 20"):
            for tensor in re.findall(r'\{"t":(\d+)\}', args):
                self.assertEqual(int(tensor) >> 40, op >> 40)
        return info, of_rank

    def test_torchrun_is_one_session_with_two_ranks(self):
        done = subprocess.run([HIGHWATER, "record", "--json", "-o", self.session, "--warmup", "1", "--steps", "3", "--",
                               *self.torchrun(6, 0)], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual((report["steps"], report["processes"], report["dropped"]), (6, 2, 0))
        self.assertEqual(done.stderr.count("loss"), 2)  # two write at once, word by word
        self.assertNotIn("through Python", done.stderr)  # the framework is found in the process
        _, of_rank = self.check(3)
        for infos in of_rank.values():  # per-size data: longer inputs, more activations, the same layers
            sizes = [info["categories"]["activation"] for info in infos]
            self.assertEqual(len(set(sizes)), 3, sizes)
            self.assertEqual(infos[1]["ops"], infos[2]["ops"])  # the first one still sorts its gradients into buckets
        plan = self.told("plan", "--json", self.session, "--planner", "mimose", "--ratio", "0.97", "--step", "5")
        self.assertEqual(json.loads(plan.stdout)["status"], "ok")

    @nightly.nightly
    def test_spawned_processes_are_ranks(self):
        spawn = self.python, self.script(SPAWN, "spawn.py")
        alone = self.lines_of(*spawn)
        self.assertEqual(self.lines_of(HIGHWATER, "record", "-o", self.session, "--", *spawn), alone)
        info = json.loads(self.told("info", "--json", self.session).stdout)
        self.assertEqual([(rank["rank"], len(rank["steps"])) for rank in info["ranks"]], [(0, 3), (1, 3)])

    @nightly.nightly
    def test_a_launcher_in_python_is_passed_over(self):
        done = subprocess.run([HIGHWATER, "record", "-o", self.session, "--", self.python, self.script(LAUNCHER, "launch.py"), self.python,
                               self.script(train_test.DEEP, "deep.py")], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("through Python", done.stderr)
        info = json.loads(self.told("info", "--json", self.session).stdout)
        self.assertEqual((info["steps"], len(info["ranks"]), info["gaps"]), (3, 1, []))

    def test_each_rank_under_a_plan_of_its_own(self):
        deep = self.script(DEEP, "deep.py")

        alone = self.lines_of(*self.run_ranks(deep))
        self.assertEqual(self.lines_of(HIGHWATER, "record", "-o", self.session, "--", *self.run_ranks(deep)), alone)
        # The buckets of DDP, which no op has made, are there before the first op that reads them.
        self.assertEqual(self.query("SELECT s.bytes FROM storages s JOIN steps t ON s.alloc_seq > t.first_seq AND"
                                    " s.alloc_seq < t.end_seq WHERE s.creator IS NULL AND s.bytes > 100000"), [])
        side = json.loads(self.told("info", "--json", "--ranks", self.session).stdout)
        self.assertTrue(side["exchanges_matched"])
        slowest = side["slowest_rank"]  # under load it need not be the one with more to do
        self.assertGreaterEqual(side["ranks"][1 - slowest]["waiting_ns"], side["ranks"][slowest]["waiting_ns"])
        self.assertGreaterEqual(side["time_ns"], max(rank["time_ns"] for rank in side["ranks"]))
        each = json.loads(self.told("plan", "--json", self.session, "--ranks", "all", "--each", "--ratio", "0.8", "--planner",
                                    "chen-greedy", "-o", os.path.join(self.folder, "each")).stdout)
        for rank in each["ranks"]:
            self.assertLessEqual(rank["peak_bytes"], 0.8 * rank["baseline_peak_bytes"])
        self.assertGreaterEqual(each["time_ns"], each["baseline_time_ns"])
        plans = os.path.join(self.folder, "plans")
        os.mkdir(plans)
        predicted = []
        for rank in json.loads(self.told("info", "--json", self.session).stdout)["ranks"]:
            made = self.told("plan", "--json", self.session, "--step", str(rank["steps"][-1]), "--ratio", "0.7", "--planner",
                             "chen-greedy", "-o", os.path.join(plans, f"{rank['rank']}.plan.json"))
            predicted.append(json.loads(made.stdout)["peak_bytes"])
        file = os.path.join(self.folder, "report.json")
        self.assertEqual(self.lines_of(HIGHWATER, "train", self.session, plans, "--report", file, "--", *self.run_ranks(deep)), alone)
        with open(file) as report:
            ranks = json.load(report)["ranks"]
        self.assertEqual([rank["rank"] for rank in ranks], [0, 1])
        for rank, peak in zip(ranks, predicted, strict=True):
            self.assertEqual((rank["steps"], rank["steps_planned"], rank["divergences"]), (6, 6, []))
            self.assertEqual((rank["predicted_peak_bytes"], rank["measured_peak_bytes"]), (peak, peak))
            self.assertGreater(rank["recomputed_ops"], 0)

    def test_each_rank_within_a_budget(self):
        deep, file = self.script(DEEP, "deep.py"), os.path.join(self.folder, "report.json")

        def ranks(*options):
            lines = self.lines_of(HIGHWATER, "train", *options, "--report", file, "--", *self.run_ranks(deep))
            with open(file) as report:
                return lines, json.load(report)["ranks"]

        alone, free = ranks()
        budget = int(0.8 * max(rank["measured_peak_bytes"] for rank in free))
        lines, within = ranks("--budget", str(budget))
        self.assertEqual(lines, alone)
        self.assertEqual([rank["rank"] for rank in within], [0, 1])
        for rank in within:
            self.assertEqual((rank["budget_bytes"], rank["modes"]["none"]), (budget, 0))
            self.assertLessEqual(rank["measured_peak_bytes"], budget)
        self.assertGreater(within[1]["evictions"], 0)  # its inputs are twice as large
        self.assertGreater(within[1]["recomputed_ops"], within[0]["recomputed_ops"])

    def test_attach_to_both(self):
        # One length: the ranks may be attached to at different steps.
        common = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": free_port()}
        ranks = [subprocess.Popen([self.python, self.train, "100000", os.path.join(self.folder, "rank"), "0.01",
                                   "1"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  env={**common, "RANK": str(rank)}) for rank in (0, 1)]
        for process in ranks:
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
        deadline = time.monotonic() + 60
        paths = [os.path.join(self.folder, "rank" + str(rank)) for rank in (0, 1)]
        while not all(os.path.exists(path) and os.path.getsize(path) for path in paths):
            self.assertLess(time.monotonic(), deadline)
            self.assertEqual([process.poll() for process in ranks], [None, None])
            time.sleep(0.05)
        pids = [process.pid for process in ranks]
        self.told("attach", "--json", "-o", self.session, "--steps", "2", *map(str, pids))
        info, _ = self.check(2)
        self.assertEqual([rank["pid"] for rank in info["ranks"]], pids)
        self.assertEqual([process.poll() for process in ranks], [None, None])


@needs_torch2
@nightly.repeats("test_each_rank_within_a_budget")
class RanksOnTorch2(Ranks):
    python = TORCH2
    options = ()
    test_attach_to_both = None


if __name__ == "__main__":
    nightly.main()
