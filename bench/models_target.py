#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trains a model of a public package from random weights, as people train it on one GPU, and writes down each step's loss,
time and peak as torch says them. Deterministic, so that runs compare bit by bit."""
import argparse
import contextlib
import os
import sys

import torch
from torch.nn import functional

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "gpu"))
from measured import deterministic, write_steps  # noqa: E402


def language(kind, small, **sizes):
    """A causal language model of transformers, and what makes a batch of its tokens."""
    import transformers
    config = transformers.AutoConfig.for_model(kind, **sizes, use_cache=False)
    batch, length = (8, 64) if small else (16, 1024)
    model = transformers.AutoModelForCausalLM.from_config(config)

    def loss(device):
        tokens = torch.randint(0, config.vocab_size, (batch, length)).to(device)
        return model(input_ids=tokens, labels=tokens).loss
    return model, loss


def images(model, small):
    batch, size = (2, 32) if small else (128, 224)

    def loss(device):
        data, targets = torch.randn(batch, 3, size, size), torch.randint(0, 1000, (batch,))
        return functional.cross_entropy(model(data.to(device)), targets.to(device))
    return model, loss


def gpt2_medium(small):
    layers, width = (2, 64) if small else (24, 1024)
    return language("gpt2", small, n_layer=layers, n_embd=width, n_head=16, vocab_size=512 if small else 50257)


def llama(small):
    layers, width = (2, 64) if small else (16, 2048)
    return language("llama", small, num_hidden_layers=layers, hidden_size=width, intermediate_size=4 * width, num_attention_heads=16,
                    num_key_value_heads=4, vocab_size=512 if small else 32000)


def resnet152(small):
    import torchvision
    return images(torchvision.models.resnet152(), small)


def vit_large(small):
    import timm
    return images(timm.create_model("vit_tiny_patch16_224" if small else "vit_large_patch16_224", img_size=32 if small else 224), small)


MODELS = {"gpt2-medium": gpt2_medium, "llama": llama, "resnet152": resnet152, "vit-large": vit_large}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--small", action="store_true", help="sizes that a CPU can train: they check the program")
    parser.add_argument("--figures", required=True, help="where they go, as JSON")
    arguments = parser.parse_args()
    deterministic()
    cuda = arguments.device == "cuda"
    with torch.device(arguments.device):
        model, loss_of = MODELS[arguments.model](arguments.small)
    model.to(arguments.device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=cuda)
    context = torch.autocast(arguments.device, torch.bfloat16) if cuda else contextlib.nullcontext()
    def step():
        with context:
            loss = loss_of(arguments.device)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return loss

    write_steps(arguments.figures, model, arguments.device, arguments.steps, step)


if __name__ == "__main__":
    main()
