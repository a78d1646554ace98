# SPDX-License-Identifier: MIT
"""What the programs of the zoo share: their table, the usual loop, and what they print, by which two runs are compared."""
import hashlib

import torch

PROGRAMS = {}  # name: (packages besides torch, function of the number of steps)


def program(name, *packages):
    def add(function):
        PROGRAMS[name] = packages, function
        return function
    return add


def tell(step, loss):
    print("step", step, float(loss.detach().double()).hex(), flush=True)


def digest(*modules):
    """Of all parameters and buffers, bit by bit."""
    sums = hashlib.sha256()
    for module in modules:
        for tensor in module.state_dict().values():
            if isinstance(tensor, torch.Tensor):
                sums.update(tensor.detach().cpu().contiguous().view(-1).float().numpy().tobytes())
    print("digest", sums.hexdigest(), flush=True)


def train(steps, model, loss_of, optimizer=None, after=None):
    """The usual loop; `after` is called between backward and the optimizer's step."""
    optimizer = optimizer or torch.optim.AdamW(model.parameters(), lr=1e-3)
    model.train()
    for step in range(steps):
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        if after:
            after()
        optimizer.step()
        tell(step, loss)
    digest(model)
