#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains a MobileNet-v2 on random images with SGD and momentum; prints each loss exactly.

The network of Sandler et al. (CVPR 2018), table 2, with a stem of stride 1, as is usual for small images.
"""
import argparse

import torch
from torch import nn

# Expansion, channels, repetitions, stride of the first.
STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def convolution(inside, outside, size=1, stride=1, groups=1, activate=True):
    parts = [nn.Conv2d(inside, outside, size, stride, size // 2, groups=groups, bias=False), nn.BatchNorm2d(outside)]
    return nn.Sequential(*parts, *([nn.ReLU6(inplace=True)] if activate else []))


class InvertedResidual(nn.Module):
    def __init__(self, inside, outside, expansion, stride):
        super().__init__()
        hidden = inside * expansion
        self.residual = stride == 1 and inside == outside
        self.expand = convolution(inside, hidden) if expansion > 1 else nn.Identity()
        self.depthwise = convolution(hidden, hidden, 3, stride, groups=hidden)
        self.project = convolution(hidden, outside, activate=False)

    def forward(self, images):
        result = self.project(self.depthwise(self.expand(images)))
        return images + result if self.residual else result


class MobileNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.stem = convolution(3, 32, 3)
        blocks, inside = [], 32
        for expansion, outside, count, stride in STAGES:
            for n in range(count):
                blocks.append(InvertedResidual(inside, outside, expansion, stride if n == 0 else 1))
                inside = outside
        self.blocks = nn.Sequential(*blocks)
        self.last = convolution(inside, 1280)
        self.dropout = nn.Dropout(0.2)
        self.head = nn.Linear(1280, classes)

    def forward(self, images):
        return self.head(self.dropout(self.last(self.blocks(self.stem(images))).mean(dim=(2, 3))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--size", type=int, default=32, help="height and width of an image")
    options = parser.parse_args()

    torch.manual_seed(4)
    model = MobileNet(10)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=4e-5)

    for step in range(options.steps):
        images = torch.randn(options.batch, 3, options.size, options.size)
        target = torch.randint(0, 10, (options.batch,))
        optimizer.zero_grad()
        loss = criterion(model(images), target)
        loss.backward()
        optimizer.step()
        print(step, loss.item().hex(), flush=True)


if __name__ == "__main__":
    main()
