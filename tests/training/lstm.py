#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains two stacked LSTM cells, step by step, to predict the next value of noisy sine waves, with Adam."""
import argparse

import torch
from torch import nn


class Predictor(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.cells = nn.ModuleList([nn.LSTMCell(4, width), nn.LSTMCell(width, width)])
        self.dropout = nn.Dropout(0.2)
        self.head = nn.Linear(width, 4)

    def forward(self, series):
        states = [None] * len(self.cells)
        outputs = []
        for value in series.unbind(1):
            for layer, cell in enumerate(self.cells):
                states[layer] = cell(value, states[layer])
                value = self.dropout(states[layer][0])
            outputs.append(self.head(value))
        return torch.stack(outputs, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--batch", type=int, default=192)
    parser.add_argument("--length", type=int, default=16)
    parser.add_argument("--width", type=int, default=128)
    options = parser.parse_args()

    torch.manual_seed(3)
    model = Predictor(options.width)
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    time = torch.arange(options.length + 1) / 8

    for step in range(options.steps):
        phase = torch.rand(options.batch, 1, 4) * 6.28
        series = torch.sin(time[None, :, None] + phase) + 0.05 * torch.randn(
            options.batch, options.length + 1, 4)
        optimizer.zero_grad()
        loss = criterion(model(series[:, :-1]), series[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        print(step, loss.item().hex(), flush=True)


if __name__ == "__main__":
    main()
