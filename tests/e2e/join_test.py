#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""One training on two machines (two launchers on this one): recorded on each, joined, planned for all ranks, trained."""
import json
import os
import subprocess
import unittest

from ranks_test import DEEP, free_port
from sessions import HIGHWATER, InFolder, run
from torch2 import TORCH2


class Join(InFolder):
    def on_two_nodes(self, *highwater):
        """Runs the training on both under these words, which get the node's number, and returns what each rank wrote."""
        script, port = self.script(DEEP, "deep.py"), free_port()
        results = os.path.join(self.folder, "lines")
        nodes = [subprocess.Popen([*(word.format(node=node) for word in highwater), TORCH2 or "/usr/bin/python3", "-m",
                                   "torch.distributed.run", "--nnodes", "2", "--node_rank", str(node), "--nproc_per_node", "1",
                                   "--master_addr", "localhost", "--master_port", port,
                                   # Debian's torchrun fails on Python 3.11 for want of a name for "no redirection".
                                   "--redirects", "1", "--tee", "1", script, results],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for node in (0, 1)]
        for node in nodes:
            _, said = node.communicate(timeout=300)
            self.assertEqual(node.returncode, 0, said)
        return self.lines_in(results)

    def path(self, name):
        return os.path.join(self.folder, name)

    def json_of(self, *words):
        code, out, err = run(*words)
        self.assertEqual(code, 0, err)
        return json.loads(out)

    def refused(self, code, *words):
        got, _, said = run(*words)
        self.assertEqual((got, said.count("highwater: error"), said.count("hint:")), (code, 1, 1), said)

    def test_two_nodes_are_one_session(self):
        lines = self.on_two_nodes(HIGHWATER, "record", "-o", self.path("{node}.hws"), "--")
        sessions = [self.path("0.hws"), self.path("1.hws")]
        joined = self.json_of("join", "--json", sessions[1], sessions[0], "-o", self.session)
        self.assertEqual((joined["ranks"], joined["steps"]), (2, 6))
        self.assertEqual([part["ranks"] for part in joined["sessions"]], [[0], [1]])
        clock = joined["sessions"][1]
        self.assertEqual(clock["collectives"], 3)
        self.assertLess(abs(clock["clock_offset_ns"]), 1e9)  # both have this machine's
        self.check_ranks(sessions)
        self.check_plans(lines)
        self.refused(2, "join", sessions[0], "-o", self.path("x.hws"))
        self.refused(4, "join", sessions[0], sessions[0], "-o", self.path("x.hws"))
        self.assertFalse(os.path.exists(self.path("x.hws")))

    def check_ranks(self, sessions):
        """What each rank has in the joined session is what it had in its own."""
        self.assertIn("rank 1", run("info", self.session)[1])
        ranks = self.json_of("info", "--json", self.session)["ranks"]
        self.assertEqual([(rank["rank"], len(rank["steps"]), rank["world_size"]) for rank in ranks], [(0, 3, 2), (1, 3, 2)])
        for rank, alone in zip(ranks, sessions, strict=True):
            before = self.json_of("info", "--json", alone)
            after = self.json_of("info", "--json", "--step", rank["steps"][-1], self.session)
            for key in ("ops", "tensors", "storages", "baseline", "categories", "fingerprint", "collectives"):
                self.assertEqual(after[key], before[key], key)
            self.assertEqual([use["operation"] for use in after["collectives"]], ["all-reduce"])
            self.assertGreater(after["collectives"][0]["bytes"], 1e6)  # all gradients

    def check_plans(self, lines):
        """A plan for each rank within one budget; the nodes train under them, to the same bits."""
        plans = self.path("plans")
        planned = self.json_of("plan", "--json", self.session, "--ranks", "all", "--planner", "chen-greedy", "--ratio", "0.75",
                               "-o", plans)
        self.assertEqual(sorted(os.listdir(plans)), ["rank0.plan.json", "rank1.plan.json"])
        for rank in planned["ranks"]:
            self.assertLessEqual(rank["peak_bytes"], planned["budget_bytes"])
        # The inputs of rank 1 are twice as large: it alone has to recompute. Which one sets the step is a matter of the
        # times that were recorded.
        self.assertEqual([rank["recomputed_ops"] > 0 for rank in planned["ranks"]], [False, True])
        self.assertTrue(planned["exchanges_matched"])
        self.assertIn(planned["slowest_rank"], (0, 1))
        self.assertGreaterEqual(planned["time_ns"], max(rank["time_ns"] for rank in planned["ranks"]))
        report = self.path("report{node}.json")
        self.assertEqual(self.on_two_nodes(HIGHWATER, "train", self.session, plans, "--report", report, "--"), lines)
        for rank in planned["ranks"]:
            with open(report.format(node=rank["rank"])) as file:
                told = json.load(file)
            self.assertEqual((told["steps"], told["divergences"]), (6, []))
            self.assertEqual(told["measured_peak_bytes"], rank["peak_bytes"])
        swept = self.json_of("sweep", "--json", self.session, "--ranks", "all", "--planners", "chen-greedy,dtr:eqclass", "--ratios",
                             "0.9,0.75", "--jobs", "2")
        self.assertEqual([(row["planner"], row["ratio"]) for row in swept["rows"]],
                         [(planner, ratio) for planner in ("chen-greedy", "dtr:eqclass") for ratio in (0.9, 0.75)])
        row = swept["rows"][1]
        self.assertEqual([rank["peak_bytes"] for rank in row["ranks"]], [rank["peak_bytes"] for rank in planned["ranks"]])
        self.assertEqual((row["time_ns"], row["slowest_rank"]), (planned["time_ns"], planned["slowest_rank"]))
        self.refused(2, "sweep", self.session, "--ranks", "all", "--step", "1")
        self.refused(2, "plan", self.session, "--ranks", "all", "--ratio", "0.75")
        self.refused(3, "plan", self.session, "--ranks", "all", "--budget", "1kB", "-o", self.path("none"))
        self.assertFalse(os.path.exists(self.path("none")))


if __name__ == "__main__":
    unittest.main(verbosity=2)
