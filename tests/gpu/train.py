#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains a small model and writes down what torch itself says of it: losses, step times, memory, kernels."""
import argparse
import json
import os
import time

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.projection = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.wide = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(),
                                  nn.Linear(4 * width, width))

    def forward(self, hidden):
        batch, length, width = hidden.shape
        query, key, value = (part.view(batch, length, 4, width // 4).transpose(1, 2)
                             for part in self.projection(self.norm(hidden)).chunk(3, dim=-1))
        weights = torch.softmax(query @ key.transpose(-2, -1) / (width // 4) ** 0.5, -1)
        hidden = hidden + self.out((weights @ value).transpose(1, 2).reshape(batch, length, width))
        return hidden + self.wide(hidden)


def gpt(width):
    return nn.Sequential(nn.Embedding(256, width), *(Block(width) for _ in range(4)), nn.Linear(width, 256)), \
        lambda: torch.randint(0, 256, (8, width // 2))


def conv(width):
    parts = []
    for before in (3, width, width):
        parts += [nn.Conv2d(before, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10)), \
        lambda: torch.randn(8, 3, width, width)


class Memory:
    """torch.cuda's figures; nothing on the CPU."""

    def __init__(self, device):
        self.cuda = torch.cuda if device == "cuda" else None

    def begin(self):
        if self.cuda:
            self.cuda.synchronize()
            self.cuda.reset_peak_memory_stats()

    def end(self):
        if not self.cuda:
            return {}
        stats = self.cuda.memory_stats()
        return {"allocated": stats["allocated_bytes.all.current"], "peak": stats["allocated_bytes.all.peak"],
                "requested": stats.get("requested_bytes.all.current"),
                "reserved": stats["reserved_bytes.all.current"], "reserved_peak": stats["reserved_bytes.all.peak"]}


def profiled(step, device):
    """What torch.profiler sees of one step."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    if device == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities) as profile:
        step()
        if device == "cuda":
            torch.cuda.synchronize()
    # The optimizer's own range is among those of the GPU.
    found = [event for event in profile.events() if "CUDA" in str(event.device_type) and
             not getattr(event, "is_user_annotation", False) and not event.name.startswith("Optimizer.")]
    copies = [event for event in found if event.name.startswith(("Memcpy", "Memset"))]
    kernels = [event for event in found if not event.name.startswith(("Memcpy", "Memset"))]
    return {"kernels": len(kernels), "copies": len(copies),
            "kernel_us": sum(event.time_range.elapsed_us() for event in kernels)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=("gpt", "conv"), default="gpt")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--until", help="train on until this file exists")
    parser.add_argument("--profile", action="store_true", help="the last step under torch.profiler")
    parser.add_argument("--figures", required=True, help="where they go, as JSON")
    arguments = parser.parse_args()

    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True, warn_only=True)
    model, batch = (gpt if arguments.model == "gpt" else conv)(arguments.width)
    model = model.to(arguments.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    memory, steps, kept = Memory(arguments.device), [], {}

    def step():
        memory.begin()
        begin = time.perf_counter()
        data = batch().to(arguments.device)
        optimizer.zero_grad()
        loss = model(data).float().pow(2).mean()
        loss.backward()
        optimizer.step()
        figures = memory.end()
        kept["loss"] = loss.item()
        steps.append({"loss": kept["loss"].hex(), "ms": (time.perf_counter() - begin) * 1e3, **figures})

    done = 0
    while done < arguments.steps or (arguments.until and not os.path.exists(arguments.until)):
        step()
        done += 1
        if done == 2:
            print("ready", flush=True)
    figures = {"steps": steps[-1000:], "torch": torch.__version__}
    if arguments.profile:
        figures["profiler"] = profiled(step, arguments.device)
    with open(arguments.figures + ".part", "w") as file:
        json.dump(figures, file)
    os.rename(arguments.figures + ".part", arguments.figures)


if __name__ == "__main__":
    main()
