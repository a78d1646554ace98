#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Plans that offload to host memory: the judge's figures, and carried out by the executor."""
import json
import os
import subprocess

import nightly
from sessions import HIGHWATER, InFolder, run
from torch2 import TORCH2, needs_torch2

BEGIN = """
    import hashlib, os, sys, torch
    from torch import nn
    torch.manual_seed(3)
    torch.set_num_threads(1)
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.a, self.b, self.drop = nn.LayerNorm(96), nn.Linear(96, 384), nn.Linear(384, 96), nn.Dropout(0.1)
        def forward(self, x):
            return x + self.drop(self.b(torch.tanh(self.a(self.norm(x)))))
    blocks = nn.ModuleList([Block() for _ in range(8)])
    out = nn.Linear(96, 8)
    optimizer = torch.optim.AdamW([*blocks.parameters(), *out.parameters()], lr=1e-3)
    for step in range(7):
        x, kept = torch.randn(64 if step == 5 else 1024, 96), []
        for block in blocks:
            x = block(x)
            kept.append(x)
        loss = out(x).square().mean()
    """
END = """
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        del kept
        print("step", step, loss.item().hex())
    h = hashlib.sha256()
    for state in optimizer.state.values():
        for value in state.values():
            if isinstance(value, torch.Tensor): h.update(value.numpy().tobytes())
    for p in blocks.parameters(): h.update(p.detach().numpy().tobytes() + p.grad.numpy().tobytes())
    print("digest", h.hexdigest(), torch.get_rng_state().sum().item())
    """
PLAIN = BEGIN + END


class Offloaded(InFolder):
    python = "/usr/bin/python3"

    def prepared(self, text, ratio="0.7"):
        """Records the program and plans it with host memory: the plan's file and figures."""
        self.training = self.script(text)
        recorded, _, error = run("record", "-o", self.session, "--steps", 3, "--", self.python, self.training)
        self.assertEqual(recorded, 0, error)
        plan = os.path.join(self.folder, "p.plan.json")
        planned, answer, error = run("plan", self.session, "--ratio", ratio, "--offload", "on", "--link", "20GB/s",
                                     "--time-limit", 1, "-o", plan, "--json")
        self.assertEqual(planned, 0, error)
        return plan, json.loads(answer)

    def test_a_plan_is_what_the_judge_says_wherever_it_is_carried_out(self):
        plan, planned = self.prepared(PLAIN)
        self.assertGreater(planned["offloaded_bytes"], 0)
        self.assertLessEqual(planned["host_peak_bytes"], planned["offloaded_bytes"])
        with open(plan) as file:
            written = json.load(file)
        self.assertEqual(written["version"], 2)
        self.assertEqual(written["link"]["out_bytes_per_second"], 20_000_000_000)

        _, answer, error = run("check", self.session, plan, "--json")
        checked = json.loads(answer)
        self.assertTrue(checked["within_budget"] and checked["as_predicted"], error)
        for key in "peak_bytes", "offloaded_bytes", "host_peak_bytes", "waited_ns":
            self.assertEqual(checked[key], planned[key], key)

        _, answer, error = run("run", self.session, plan, "--json")
        ran = json.loads(answer)
        self.assertEqual(ran["outputs_different"], 0, error)
        self.assertEqual(ran["measured_peak_bytes"], planned["peak_bytes"])

        # Addresses that a program has given out would not be those of its storages any more.
        done = subprocess.run([HIGHWATER, "train", self.session, plan, "--", self.python, self.training],
                              capture_output=True, text=True, timeout=300)
        self.assertEqual((done.returncode, done.stdout), (4, ""), done.stderr)
        self.assertIn("which a running program cannot be given yet", done.stderr)
        self.assertIn("hint: plan again without --offload on", done.stderr)

    @nightly.nightly
    def test_a_budget_for_host_memory_is_kept(self):
        self.prepared(PLAIN)
        code, answer, _ = run("plan", self.session, "--ratio", "0.6", "--planner", "offload-only", "--host-memory",
                              "100kB", "--json")
        self.assertEqual(code, 3)
        self.assertEqual(json.loads(answer)["error"]["code"], 3)
        code, answer, error = run("plan", self.session, "--ratio", "0.7", "--offload", "on", "--host-memory", "4MB",
                                  "--time-limit", 3, "--json")
        self.assertEqual(code, 0, error)
        self.assertLessEqual(json.loads(answer)["host_peak_bytes"], 4_000_000)

    def test_wrong_words(self):
        self.script(PLAIN)
        sample = os.path.join(os.path.dirname(__file__), "..", "..", "sessions", "transformer.hws")
        for words, says in ((("--planner", "chen-sqrt", "--offload", "on"), "does not offload"),
                            (("--link", "fast"), "no speed of a link"), (("--host-memory", "much"), "no size")):
            code, _, error = run("plan", sample, "--ratio", "0.8", *words)
            self.assertEqual(code, 2, error)
            self.assertIn(says, error)
            self.assertIn("hint:", error)


@nightly.nightly
@needs_torch2
class OffloadedOnTorch2(Offloaded):
    python = TORCH2


if __name__ == "__main__":
    nightly.main()
