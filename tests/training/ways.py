#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains a small network in the ways that real programs train: names of ways as arguments."""
import sys
import threading

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint


class Passing(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def keeping_products():
    from torch.utils.checkpoint import create_selective_checkpoint_contexts
    return create_selective_checkpoint_contexts([torch.ops.aten.addmm.default])


class Net(nn.Module):
    def __init__(self, way):
        super().__init__()
        self.way = way
        linear = nn.LazyLinear(64) if way == "lazy" else nn.Linear(64, 64)
        self.first = nn.Sequential(linear, nn.ReLU(), nn.Linear(64, 64), nn.Tanh())
        self.second = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))

    def forward(self, x):
        if self.way == "checkpoint-selective":
            x = checkpoint(self.first, x, use_reentrant=False, context_fn=keeping_products)
        elif self.way == "mode":
            with Passing():
                x = self.first(x)
        elif self.way.startswith("checkpoint"):
            x = checkpoint(self.first, x, use_reentrant=self.way == "checkpoint-reentrant")
        else:
            x = self.first(x)
        return self.second(x)


def optimizers(way, model):
    if way == "two-optimizers":
        return [torch.optim.SGD(model.first.parameters(), lr=0.1), torch.optim.Adam(model.second.parameters())]
    if way == "foreach":
        return [torch.optim.AdamW(model.parameters(), foreach=True)]
    if way == "fused":
        return [torch.optim.Adam(model.parameters(), fused=True)]
    return [torch.optim.Adam(model.parameters())]


def batches(way):
    if way != "loader":
        while True:
            yield torch.randn(32, 64)
    data = torch.utils.data.TensorDataset(torch.randn(256, 64))
    for (batch,) in torch.utils.data.DataLoader(data, batch_size=32, num_workers=2):
        yield batch


def train(way):
    torch.manual_seed(0)
    model = Net(way)
    run = torch.compile(model, fullgraph=way == "compile-whole") if way in ("compile", "compile-whole") else model
    steppers = optimizers(way, model)
    data = batches(way)
    for step in range(4):
        for optimizer in steppers:
            optimizer.zero_grad()
        for _ in range(3 if way == "accumulate" else 1):
            batch = next(data)
            if way == "checkpoint-reentrant":
                batch.requires_grad_()
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=way == "amp"):
                loss = run(batch).float().pow(2).mean()
            if way == "create-graph":
                gradients = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
                loss = loss + sum(gradient.pow(2).sum() for gradient in gradients)
            loss.backward()
        for optimizer in steppers:
            optimizer.step()
        print(way, step, loss.item().hex(), flush=True)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        if name == "thread":
            worker = threading.Thread(target=train, args=(name,))
            worker.start()
            worker.join()
        else:
            train(name)
