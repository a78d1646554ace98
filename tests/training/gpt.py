#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains a GPT-style decoder with dropout to continue noisy counting sequences, with AdamW; prints each loss exactly."""
import argparse

import torch
from torch import nn
from torch.nn import functional


class Attention(nn.Module):
    def __init__(self, width, heads, length, dropout):
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, 3 * width)
        self.merge = nn.Linear(width, width)
        self.weights_dropout, self.dropout = nn.Dropout(dropout), nn.Dropout(dropout)
        self.register_buffer("future", torch.ones(length, length, dtype=torch.bool).triu(1))

    def forward(self, hidden):
        batch, length, width = hidden.shape
        query, key, value = (part.view(batch, length, self.heads, -1).transpose(1, 2)
                             for part in self.project(hidden).split(width, dim=2))
        scores = query @ key.transpose(2, 3) * (width // self.heads) ** -0.5
        scores = scores.masked_fill(self.future[:length, :length], float("-inf"))
        mixed = self.weights_dropout(scores.softmax(dim=-1)) @ value
        return self.dropout(self.merge(mixed.transpose(1, 2).reshape(batch, length, width)))


class Block(nn.Module):
    def __init__(self, width, heads, length, dropout):
        super().__init__()
        self.before, self.attention = nn.LayerNorm(width), Attention(width, heads, length, dropout)
        self.between = nn.LayerNorm(width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width),
                                  nn.Dropout(dropout))

    def forward(self, hidden):
        hidden = hidden + self.attention(self.before(hidden))
        return hidden + self.feed(self.between(hidden))


class Decoder(nn.Module):
    def __init__(self, words, width, heads, layers, length, dropout):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(width, heads, length, dropout) for _ in range(layers))
        self.last = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight  # tied
        nn.init.normal_(self.words.weight, std=0.02)

    def forward(self, tokens):
        hidden = self.dropout(self.words(tokens) + self.places(torch.arange(tokens.shape[1])))
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(self.last(hidden))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--length", type=int, default=64, help="tokens in a sequence")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--dropout", type=float, default=0.1)
    options = parser.parse_args()

    torch.manual_seed(6)
    words = 512
    model = Decoder(words, options.width, 4, options.layers, options.length, options.dropout)
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    plain = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}],
                                  lr=3e-4, betas=(0.9, 0.95))

    for step in range(options.steps):
        tokens = (torch.randint(0, words, (options.batch, 1)) + torch.arange(options.length + 1)) % words
        noise = torch.rand(tokens.shape) < 0.05
        tokens = torch.where(noise, torch.randint(0, words, tokens.shape), tokens)
        optimizer.zero_grad()
        logits = model(tokens[:, :-1])
        loss = functional.cross_entropy(logits.reshape(-1, words), tokens[:, 1:].reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        print(step, loss.item().hex(), flush=True)


if __name__ == "__main__":
    main()
