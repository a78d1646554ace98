#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A training script of tests/training, unchanged, whose model is compiled as soon as it is made.

usage: compiled_target.py SCRIPT ARGUMENTS…"""
import importlib
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "training"))
MODELS = {"gpt": ("gpt", "Decoder"), "transformer": ("transformer", "Classifier"), "unet": ("unet", "UNet"),
          "mobilenet": ("mobilenet", "MobileNet"), "resnet": ("torchvision.models.resnet", "ResNet")}


def main():
    name = sys.argv[1]
    script = importlib.import_module(name)
    module, kind = MODELS[name]
    kind = getattr(importlib.import_module(module), kind)
    make = kind.__init__

    def made(model, *arguments, **named):
        make(model, *arguments, **named)
        model.compile()

    kind.__init__ = made
    sys.argv[1:] = sys.argv[2:]
    script.main()


if __name__ == "__main__":
    main()
