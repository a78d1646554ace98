#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a step is in programs without modules or without an optimizer: `record` and `train` see the same steps. What a
plan does not come to is said."""
import json
import os
import subprocess

import nightly
from sessions import InFolder, run
from torch2 import TORCH2, needs_torch2

BEGIN = """
    import hashlib, sys, torch
    from torch import nn
    torch.manual_seed(5)
    torch.set_num_threads(1)
    def digest(tensors):
        h = hashlib.sha256()
        for each in tensors: h.update(each.detach().contiguous().numpy().tobytes())
        h.update(torch.get_rng_state().numpy().tobytes())
        print("digest", h.hexdigest())
    """

# An optimizer, but no module.
RAW = BEGIN + """
    weights = [torch.randn(128, 128).div(12).requires_grad_() for _ in range(6)]
    optimizer = torch.optim.Adam(weights, lr=1e-3)
    for step in range(9):
        x = torch.randn(256, 128)
        for w in weights: x = torch.tanh(x @ w)
        loss = x.square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print("step", step, loss.item().hex())
        if step == 4:  # not the forward of a step
            with torch.no_grad(): print("norms", [w.norm().item().hex() for w in weights])
    digest(weights)
    """

# The forward begins within a custom function, where gradients are off.
FUNCTIONS = BEGIN + """
    class Layer(torch.autograd.Function):
        @staticmethod
        def forward(context, x, w):
            y = torch.tanh(x @ w)
            context.save_for_backward(x, w, y)
            return y
        @staticmethod
        def backward(context, gradient):
            x, w, y = context.saved_tensors
            gradient = gradient * (1 - y * y)
            return gradient @ w.t(), x.t() @ gradient
    weights = [torch.randn(128, 128).div(12).requires_grad_() for _ in range(6)]
    optimizer = torch.optim.SGD(weights, lr=0.1)
    for step in range(9):
        x = torch.randn(2048, 128)
        with torch.no_grad(): Layer.apply(x, weights[0])
        for w in weights: x = Layer.apply(x, w)
        loss = x.square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print("step", step, loss.item().hex())
    digest(weights)
    """

# Within the backward pass modules run with gradients, in the forward pass without.
REENTRANT = BEGIN + """
    from torch.utils.checkpoint import checkpoint
    layers = nn.ModuleList(nn.Linear(128, 128) for _ in range(8))
    for step in range(7):
        x = torch.randn(600, 128, requires_grad=True)
        for layer in layers: x = checkpoint(lambda x, layer=layer: layer(x).tanh(), x, use_reentrant=True)
        loss = x.square().mean()
        loss.backward()
        with torch.no_grad():
            for p in layers.parameters():
                p -= 0.1 * p.grad
                p.grad = None
        print("step", step, loss.item().hex())
    digest(layers.parameters())
    """

# Steps within steps: inner ones by hand, or with an optimizer of their own.
META = BEGIN + """
    slow = [torch.randn(64, 64).div(8).requires_grad_() for _ in range(3)]
    optimizer = torch.optim.Adam(slow, lr=1e-3)
    def loss_of(weights, x):
        for w in weights: x = torch.tanh(x @ w)
        return x.square().mean()
    for step in range(7):
        outer = 0
        for task in range(2):
            fast = slow
            for inner in range(2):
                gradients = torch.autograd.grad(loss_of(fast, torch.randn(128, 64)), fast, create_graph=True)
                fast = [w - 0.1 * g for w, g in zip(fast, gradients)]
            outer = outer + loss_of(fast, torch.randn(128, 64))
        outer.backward()
        optimizer.step()
        optimizer.zero_grad()
        print("step", step, outer.item().hex())
    digest(slow)
    """

# No optimizer, as in most reports of bugs.
BARE = BEGIN + """
    model = nn.Sequential(*[part for _ in range(6) for part in (nn.Linear(96, 96), nn.Tanh())])
    for step in range(int(sys.argv[1])):
        x = torch.randn(2048, 96, requires_grad=True)
        loss = model(x).square().mean()
        loss.backward()
        print("step", step, loss.item().hex(), x.grad.sum().item().hex())
        for p in model.parameters(): p.grad = None
    digest(model.parameters())
    """

# Batches come from elsewhere, none, one or two before a step.
BATCHES = BEGIN + """
    model = nn.Sequential(*[part for _ in range(6) for part in (nn.Linear(96, 96), nn.Tanh())])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sent = [torch.randn(512, 96) for _ in range(9)]
    def receive(tensor):
        of = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
        return torch.empty(0).set_(of, 0, tensor.shape, tensor.stride())
    coming, waiting = iter(sent), []
    for step in range(9):
        for _ in range((2, 0, 1)[step % 3]): waiting.append(receive(next(coming)))
        loss = model(waiting.pop(0)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print("step", step, loss.item().hex())
    digest(model.parameters())
    """

# From the fifth step on it holds what it did not hold when it was recorded.
HOLDS = RAW.replace("        x = torch.randn", """        if step == 4 and sys.argv[1:] == ["more"]: held = torch.zeros(1 << 20)
        x = torch.randn""")


# A compiled optimizer tells of no step; two backward passes come before each.
COMPILED = BEGIN + """
    weights = [torch.randn(128, 128).div(12).requires_grad_() for _ in range(6)]
    optimizer = torch.optim.SGD(weights, lr=0.1)
    update = torch.compile(optimizer.step, backend="aot_eager")
    for step in range(5):
        for part in range(2):
            x = torch.randn(512, 128)
            for w in weights: x = torch.tanh(x @ w)
            loss = x.square().mean()
            loss.backward()
        update()
        optimizer.zero_grad()
        print("step", step, loss.item().hex())
    digest(weights)
    """


class Steps(InFolder):
    python = "/usr/bin/python3"

    def go(self, text, *words, ratio="0.8", steps="20", trained=None):
        """Steps of the session, the report of a run under a plan and what that has said."""
        script, plan, report = self.script(text), os.path.join(self.folder, "p.json"), os.path.join(self.folder, "r.json")
        trained = [self.python, script, *words] if trained is None else [self.python, *trained]
        plain = subprocess.run([self.python, script, *words], capture_output=True, text=True, timeout=300)
        self.assertEqual(plain.returncode, 0, plain.stderr)
        code, out, err = run("record", "-o", self.session, "--steps", steps, "--", self.python, script, *words)
        self.assertEqual((code, out), (0, plain.stdout), err)
        self.assertNotIn("callback", err)
        recorded = self.query("SELECT count(*) FROM steps")[0][0]
        code, _, err = run("plan", self.session, "--ratio", ratio, "--planner", "highwater", "--time-limit", "1",
                           "-o", plan)
        self.assertEqual(code, 0, err)
        alone = subprocess.run(trained, capture_output=True, text=True, timeout=300).stdout
        code, out, err = run("train", "--report", report, self.session, plan, "--", *trained)
        self.assertEqual((code, out), (0, alone), err)
        with open(report) as file:
            return recorded, json.load(file), err

    def all_planned(self, steps, recorded, told, err):
        self.assertEqual((recorded, told["steps"], told["steps_planned"]), (steps, steps, steps), err)
        self.assertEqual((told["steps_above_budget"], told["above_budget_bytes"], told["why"]), (0, 0, []), err)
        self.assertGreater(told["recomputed_ops"], 0)

    def test_no_module(self):
        self.all_planned(9, *self.go(RAW))

    def test_functions_of_its_own(self):
        self.all_planned(9, *self.go(FUNCTIONS, ratio="0.9"))

    def test_reentrant_checkpoints_and_updates_by_hand(self):
        self.all_planned(7, *self.go(REENTRANT, ratio="0.9"))

    def test_inner_steps(self):
        self.all_planned(7, *self.go(META))

    def test_no_optimizer(self):
        for steps in (1, 3):
            with self.subTest(steps):
                self.all_planned(steps, *self.go(BARE, str(steps)))

    def test_batches_that_come_when_they_come(self):
        self.all_planned(9, *self.go(BATCHES, ratio="0.9"))

    def test_no_module_within_a_budget(self):
        recorded, told, _ = self.go(RAW, ratio="0.9")
        report = os.path.join(self.folder, "b.json")
        script = self.script(RAW)
        code, out, err = run("train", "--budget", int(1.1 * told["budget_bytes"]), "--report", report, "--", self.python, script)
        self.assertEqual(code, 0, err)
        with open(report) as file:
            self.assertEqual(json.load(file)["steps"], recorded)

    def test_above_the_budget(self):
        script = self.script(HOLDS, "more.py")
        _, told, err = self.go(HOLDS, trained=[script, "more"])
        self.assertEqual((told["steps_planned"], told["steps_above_budget"]), (9, 5), err)
        self.assertGreater(told["above_budget_bytes"], 3 << 20)
        self.assertEqual(len(told["why"]), 1)
        self.assertIn("objects that the recorded step did not have", told["why"][0])
        self.assertEqual(err.count("note: step 4 was"), 1)
        self.assertEqual(err.count("above the budget:"), 1)

    def test_another_model(self):
        script = self.script(BARE.replace("2048", "1200"), "other.py")
        _, told, err = self.go(BARE, "5", trained=[script, "5"])
        self.assertEqual((told["steps"], told["steps_planned"]), (5, 0))
        self.assertIn("left the plan", told["why"][0])
        self.assertIn("record more steps", told["why"][0])
        self.assertIn("note: no step is under the plan so far", err)

    def test_no_training(self):
        script = self.script(BEGIN + "print(torch.randn(3).sum().item())\n", "none.py")
        _, told, err = self.go(BARE, "1", trained=[script])
        self.assertEqual((told["steps"], told["steps_planned"]), (0, 0))
        self.assertIn("no forward with gradients was seen", told["why"][0])
        self.assertIn("why ", err)


@needs_torch2
@nightly.repeats("test_reentrant_checkpoints_and_updates_by_hand", "test_no_module_within_a_budget", "test_above_the_budget",
                 "test_no_training", "test_no_optimizer", "test_inner_steps", "test_functions_of_its_own", "test_no_module")
class StepsOnTorch2(Steps):
    python = TORCH2

    def test_a_compiled_optimizer(self):
        self.all_planned(5, *self.go(COMPILED))


if __name__ == "__main__":
    nightly.main()
