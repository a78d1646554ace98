#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains a U-Net to find bright discs in noisy images, pixel by pixel, with Adam; prints each loss exactly."""
import argparse

import torch
from torch import nn


def double(inside, outside):
    return nn.Sequential(nn.Conv2d(inside, outside, 3, padding=1), nn.ReLU(),
                         nn.Conv2d(outside, outside, 3, padding=1), nn.ReLU())


class UNet(nn.Module):
    """Ronneberger et al. (MICCAI 2015), with padded convolutions."""

    def __init__(self, width, levels):
        super().__init__()
        widths = [width << level for level in range(levels + 1)]
        self.down = nn.ModuleList(double(a, b) for a, b in zip([1, *widths], widths[:-1]))
        self.pool = nn.MaxPool2d(2)
        self.bottom = nn.Sequential(double(widths[-2], widths[-1]), nn.Dropout2d(0.2))
        self.rise = nn.ModuleList(nn.ConvTranspose2d(2 * a, a, 2, stride=2) for a in widths[-2::-1])
        self.up = nn.ModuleList(double(2 * a, a) for a in widths[-2::-1])
        self.head = nn.Conv2d(width, 1, 1)

    def forward(self, images):
        kept = []
        for block in self.down:
            images = block(images)
            kept.append(images)
            images = self.pool(images)
        images = self.bottom(images)
        for rise, block in zip(self.rise, self.up):
            images = block(torch.cat([kept.pop(), rise(images)], dim=1))
        return self.head(images)


def discs(count, size):
    place = torch.arange(size, dtype=torch.float32)
    centre = torch.rand(2, count, 1, 1) * size
    distance = (place[None, :, None] - centre[0]) ** 2 + (place[None, None, :] - centre[1]) ** 2
    inside = (distance < (size / 5) ** 2).float()[:, None]
    return inside + 0.5 * torch.randn(count, 1, size, size), inside


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--size", type=int, default=96, help="height and width of an image")
    parser.add_argument("--width", type=int, default=8, help="channels of the first level")
    parser.add_argument("--levels", type=int, default=3)
    options = parser.parse_args()

    torch.manual_seed(5)
    model = UNet(options.width, options.levels)
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    for step in range(options.steps):
        images, target = discs(options.batch, options.size)
        optimizer.zero_grad()
        loss = criterion(model(images), target)
        loss.backward()
        optimizer.step()
        print(step, loss.item().hex(), flush=True)


if __name__ == "__main__":
    main()
