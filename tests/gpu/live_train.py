#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains a ResNet-50 or a GPT with dropout, deterministically, and writes down what torch says of each step: loss, time,
peak; at the end a digest of the parameters. Nothing in them lacks a deterministic implementation on a GPU."""
import argparse
import contextlib

import torch
from torch import nn
from torch.nn import functional

from measured import deterministic, write_steps


class Bottleneck(nn.Module):
    def __init__(self, before, width, stride):
        super().__init__()
        after = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(before, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, after, 1, bias=False), nn.BatchNorm2d(after))
        self.short = nn.Identity() if before == after and stride == 1 else nn.Sequential(
            nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, images):
        return functional.relu(self.body(images) + self.short(images))


class ResNet50(nn.Module):
    """With the stem for small images, and means instead of pooling."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True))
        blocks, before = [], 64
        for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for index in range(count):
                blocks.append(Bottleneck(before, width, stride if index == 0 else 1))
                before = 4 * width
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(before, 10)

    def forward(self, images):
        return self.head(self.blocks(self.stem(images)).mean((2, 3)))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project, self.merge = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1))

    def forward(self, hidden):
        batch, length, width = hidden.shape
        query, key, value = (part.view(batch, length, 4, -1).transpose(1, 2)
                             for part in self.project(self.before(hidden)).split(width, dim=2))
        weights = functional.dropout((query @ key.transpose(2, 3) * (width // 4) ** -0.5).softmax(-1), 0.1)
        hidden = hidden + self.merge((weights @ value).transpose(1, 2).reshape(batch, length, width))
        return hidden + self.feed(self.between(hidden))


class Gpt(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.words, self.places = nn.Embedding(512, width), nn.Embedding(width, width)
        self.blocks = nn.Sequential(*(Block(width) for _ in range(6)))
        self.last, self.head = nn.LayerNorm(width), nn.Linear(width, 512, bias=False)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return self.head(self.last(self.blocks(self.words(tokens) + self.places(places)))).flatten(0, 1)


def task(model, small):
    """The model, its optimizer's class with options, and what makes a batch and its targets on the CPU."""
    if model == "resnet50":
        batch, size = (20, 32) if small else (64, 64)
        return ResNet50(), (torch.optim.SGD, {"lr": 0.01, "momentum": 0.9}), lambda: (
            torch.randn(batch, 3, size, size), torch.randint(0, 10, (batch,)))
    width = 64 if small else 512
    return Gpt(width), (torch.optim.AdamW, {"lr": 1e-3}), lambda: (
        torch.randint(0, 512, (8, width)), torch.randint(0, 512, (8 * width,)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=("resnet50", "gpt"), required=True)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--autocast", action="store_true", help="forward in bfloat16 where torch sees fit")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--memory", type=int, help="bytes that the allocator may take from the driver")
    parser.add_argument("--figures", required=True, help="where they go, as JSON")
    arguments = parser.parse_args()

    deterministic()
    cuda = torch.cuda if arguments.device == "cuda" else None
    if cuda and arguments.memory:
        cuda.set_per_process_memory_fraction(arguments.memory / cuda.get_device_properties(0).total_memory)
    model, (optimizer, options), batch = task(arguments.model, cuda is None)
    model = model.to(arguments.device)
    optimizer = optimizer(model.parameters(), **options)
    context = torch.autocast(arguments.device, torch.bfloat16) if arguments.autocast else contextlib.nullcontext()

    def step():
        data, targets = (tensor.to(arguments.device) for tensor in batch())
        optimizer.zero_grad()
        with context:
            loss = functional.cross_entropy(model(data), targets)
        loss.backward()
        optimizer.step()
        return loss

    write_steps(arguments.figures, model, arguments.device, arguments.steps, step)


if __name__ == "__main__":
    main()
