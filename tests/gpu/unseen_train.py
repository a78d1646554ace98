#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains a small network with something in it that no op shows, and prints each loss bit by bit: a batch that code past
the dispatcher fills, a setting that holds for a part of the forward pass, or an op with a state of its own."""
import argparse
import ctypes

import torch
from torch import nn

from measured import deterministic

ROWS, WIDTH, LAYERS, STEPS = 1024, 256, 8, 6


def fill(tensor, values, hidden):
    """Writes values by no op. `hidden`: by an address that no guard has seen."""
    base = getattr(torch._C, "TensorBase", None) or torch._C._TensorBase
    address = base.data_ptr(tensor) if hidden else tensor.data_ptr()
    count = values.numel() * values.element_size()
    if tensor.is_cuda:
        source = ctypes.c_void_p(values.data_ptr())
        failed = ctypes.CDLL("libcuda.so.1").cuMemcpyHtoD_v2(ctypes.c_uint64(address), source, ctypes.c_size_t(count))
        assert not failed, failed
    else:
        ctypes.memmove(address, values.data_ptr(), count)


def filled(layers, device, hidden):
    """Batches are made by torch.zeros and filled by a copy of the driver's."""
    hidden_state = torch.randn(ROWS, WIDTH).to(device)
    for layer in layers:
        batch = torch.zeros(ROWS, WIDTH, device=device)
        fill(batch, torch.randn(ROWS, WIDTH), hidden)
        hidden_state = layer(hidden_state) * (batch * 0.5 + 0.1).sin()
    return hidden_state


def setting(layers, device, _):
    """A part of the forward pass runs in TF32, on the CPU without denormals."""
    hidden_state = torch.randn(ROWS, WIDTH).to(device)
    for layer in layers[:LAYERS // 2]:
        hidden_state = layer(hidden_state)
    if device == "cuda":
        torch.set_float32_matmul_precision("high")
        part = torch.mm(hidden_state, layers[0].weight.detach() * 3).tanh()
        torch.set_float32_matmul_precision("highest")
    else:
        torch.set_flush_denormal(True)
        part = torch.exp(hidden_state * 20 - 95) * 0.5
        torch.set_flush_denormal(False)
        part = part * 1e35 * 1e3
    other = hidden_state
    for layer in layers[LAYERS // 2:]:
        other = layer(other)
    return other * part


CALLS = [0]


def counts(values):
    CALLS[0] += 1
    return values + CALLS[0] * 0.01


def counter(layers, device, _):
    """An op of torch.library counts how often it runs, and computes with that."""
    hidden_state = torch.randn(ROWS, WIDTH).to(device)
    for layer in layers:
        hidden_state = torch.tanh(layer(hidden_state)) * torch.ops.unseen.counts(hidden_state.detach()).sin()
    return hidden_state


KINDS = {each.__name__: each for each in (filled, setting, counter)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=KINDS, required=True)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--hidden", action="store_true", help="fill by an address that no guard has seen")
    arguments = parser.parse_args()
    deterministic()
    torch.set_num_threads(1)
    library = torch.library.Library("unseen", "DEF")
    library.define("counts(Tensor values) -> Tensor")
    library.impl("counts", counts, arguments.device.upper())
    layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)).to(arguments.device)
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.1)
    for _ in range(STEPS):
        loss = KINDS[arguments.kind](layers, arguments.device, arguments.hidden).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item().hex(), flush=True)


if __name__ == "__main__":
    main()
