#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains one of torchvision's ResNets on random images with SGD; prints each loss exactly.

With the stem that is usual for small images: a 3x3 convolution of stride 1, no pooling.
"""
import argparse

import torch
import torchvision


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--depth", type=int, choices=(18, 34, 50), default=18)
    parser.add_argument("--batch", type=int, default=48)
    parser.add_argument("--size", type=int, default=32, help="height and width of an image")
    options = parser.parse_args()

    torch.manual_seed(1)
    model = getattr(torchvision.models, f"resnet{options.depth}")(num_classes=10)
    model.conv1 = torch.nn.Conv2d(3, 64, kernel_size=3, padding=1, bias=False)
    model.maxpool = torch.nn.Identity()
    criterion = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, weight_decay=1e-4)
    images = torch.randn(4 * options.batch, 3, options.size, options.size)
    labels = torch.randint(0, 10, (4 * options.batch,))

    for step in range(options.steps):
        first = step % 4 * options.batch
        batch = images[first:first + options.batch]
        target = labels[first:first + options.batch]
        optimizer.zero_grad()
        loss = criterion(model(batch), target)
        loss.backward()
        optimizer.step()
        print(step, loss.item().hex(), flush=True)


if __name__ == "__main__":
    main()
