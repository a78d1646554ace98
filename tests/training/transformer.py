#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains a Transformer encoder with dropout to classify token sequences, with AdamW."""
import argparse

import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self, words, width, heads, layers, length, classes):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.position = nn.Parameter(torch.randn(length, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers)
        self.head = nn.Linear(width, classes)

    def forward(self, tokens):
        hidden = self.embedding(tokens) + self.position
        return self.head(self.encoder(hidden).mean(dim=1))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=64, help="tokens in a sequence")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=2)
    options = parser.parse_args()

    torch.manual_seed(2)
    model = Classifier(1000, options.width, 4, options.layers, options.length, 5)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    for step in range(options.steps):
        tokens = torch.randint(0, 1000, (options.batch, options.length))
        target = tokens.sum(dim=1) % 5
        optimizer.zero_grad()
        loss = criterion(model(tokens), target)
        loss.backward()
        optimizer.step()
        print(step, loss.item().hex(), flush=True)


if __name__ == "__main__":
    main()
