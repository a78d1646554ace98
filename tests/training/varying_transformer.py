#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains a Transformer encoder on batches of varying length, as sentences come: mostly short, some
long. Every batch is padded to its longest sequence."""
import argparse
import random

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.projection = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.wide = nn.Linear(width, 4 * width)
        self.activation = nn.GELU()
        self.narrow = nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(0.1)

    def attend(self, hidden):
        batch, length, width = hidden.shape
        query, key, value = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.projection(hidden).chunk(3, dim=-1))
        weights = torch.softmax(query @ key.transpose(-2, -1) / (width // self.heads) ** 0.5, -1)
        mixed = self.dropout(weights) @ value
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))

    def forward(self, hidden):
        hidden = hidden + self.attend(self.norm1(hidden))
        return hidden + self.narrow(self.activation(self.wide(self.norm2(hidden))))


class Classifier(nn.Module):
    def __init__(self, words, width, heads, layers, longest, classes):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.position = nn.Embedding(longest, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.head = nn.Linear(width, classes)

    def forward(self, tokens):
        hidden = self.embedding(tokens) + self.position(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(hidden.mean(dim=1))


def lengths(seed, longest):
    """Lengths of the longest sequence of a batch: log-normal around a quarter of `longest`."""
    draw = random.Random(seed)
    while True:
        yield max(8, min(longest, int(draw.lognormvariate(0, 0.6) * longest / 4)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--longest", type=int, default=128, help="tokens in a sequence")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=5)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    torch.set_num_threads(1)
    model = Classifier(500, options.width, 4, options.layers, options.longest, 5)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)

    for step, length in zip(range(options.steps), lengths(options.seed, options.longest)):
        tokens = torch.randint(0, 500, (options.batch, length))
        target = tokens.sum(dim=1) % 5
        optimizer.zero_grad()
        loss = criterion(model(tokens), target)
        loss.backward()
        optimizer.step()
        print(step, length, loss.item().hex(), flush=True)


if __name__ == "__main__":
    main()
