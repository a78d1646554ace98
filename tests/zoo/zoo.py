#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Trains one of the zoo's programs for some steps and prints each step's loss and a digest of the parameters, bit by
bit. Without a name: the names of those whose packages this interpreter has."""
import argparse
import importlib.util
import warnings

import torch
from loop import PROGRAMS

for each in ("networks", "ways", "libraries"):
    importlib.import_module(each)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="?", choices=PROGRAMS, metavar="NAME")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--device", help="where tensors are made that name none (a GPU: with deterministic kernels)")
    options = parser.parse_args()
    if options.name is None:
        for name, (packages, _) in PROGRAMS.items():
            if all(importlib.util.find_spec(package) for package in packages):
                print(name)
        return
    warnings.simplefilter("ignore")
    torch.manual_seed(7)
    torch.set_num_threads(1)
    if options.device:
        torch.set_default_device(options.device)
        torch.use_deterministic_algorithms(True, warn_only=True)
    PROGRAMS[options.name][1](options.steps)


if __name__ == "__main__":
    main()
