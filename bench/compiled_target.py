#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A training script of tests/training, unchanged, whose model is compiled as soon as it is made.

usage: compiled_target.py SCRIPT ARGUMENTS…"""
import importlib
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "training"))
MODELS = {"gpt": "Decoder", "transformer": "Classifier", "unet": "UNet", "mobilenet": "MobileNet", "resnet": "ResNet"}


def main():
    name = sys.argv[1]
    script = importlib.import_module(name)
    kind = getattr(script, MODELS[name], None) or importlib.import_module("torchvision.models.resnet").ResNet
    make = kind.__init__

    def made(model, *arguments, **named):
        make(model, *arguments, **named)
        model.compile()

    kind.__init__ = made
    sys.argv[1:] = sys.argv[2:]
    script.main()


if __name__ == "__main__":
    main()
