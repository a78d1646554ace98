#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A small training whose steps also do what few programs do: names of dimensions, tensors of Python's
own kind, ops of its own, functional transforms, scripts, quantization, a profiler. Prints it all."""
import argparse
import io

import torch
from torch import nn

try:
    from torch.func import grad, vmap
except ImportError:
    from functorch import grad, vmap

LIBRARY = torch.library.Library("unusual", "DEF")
LIBRARY.define("twice(Tensor x, Tensor[] more, int n=2, str how='a') -> (Tensor, Tensor[])")
LIBRARY.impl("twice", lambda x, more, n=2, how="a": (x * n, [each + 1 for each in more]), "CPU")


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        wrapper = torch.Tensor._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype)
        wrapper.inner = inner
        return wrapper

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        plain = [each.inner if isinstance(each, Wrapper) else each for each in args]
        out = function(*plain, **(kwargs or {}))
        return Wrapper(out) if isinstance(out, torch.Tensor) else out


@torch.jit.script
def scripted(x):
    return (x.sin() + x.cos()) * 2


def names():
    if not hasattr(torch.Tensor, "refine_names"):  # newer frameworks know no names of dimensions
        return
    named = torch.zeros(2, 3, names=("N", "C")) + 1
    yield named.sum("N").rename(None).sum()
    yield named.align_to("C", "N").rename(None).sum()
    with torch.inference_mode():
        yield torch.empty(2, names=("A",)).size("A")
        yield named.refine_names("N", "C").max("C")[0].rename(None).sum()
        yield (torch.ones(3, 4).view(4, 3).t() @ torch.ones(4, 2)).sum()


def kinds(x):
    yield torch.complex(x, x).conj().real.neg().sum()
    yield torch.quantize_per_tensor(x, 0.1, 0, torch.quint8).dequantize().sum()
    yield torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2)).to_dense().sum()
    yield (Wrapper(x) * 2 + Wrapper(x)).inner.sum()
    changed = torch.ones(4)
    changed.set_(torch.zeros(2))
    yield changed.resize_(8).zero_().numel()


def calls(x):
    yield scripted(x).sum()
    yield torch.jit.trace(nn.Linear(8, 2), x)(x).sum()
    yield Double.apply(x.clone().requires_grad_()).sum()
    first, more = torch.ops.unusual.twice(x, [x], 3, how="b")
    yield first.sum() + more[0].sum()
    yield vmap(lambda row: row.sin().sum())(x).sum()
    yield grad(lambda all: (all ** 3).sum())(x).sum()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        yield (x @ x.t()).float().sum()
    with torch.profiler.profile() as profiler:
        x.sum()
    yield any(event.name == "aten::sum" for event in profiler.events())
    try:
        torch.ones(2) @ torch.ones(3)
    except RuntimeError as error:
        yield type(error).__name__
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    yield torch.load(file).sum()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--width", type=int, default=8, help="of the hidden layer")
    options = parser.parse_args()
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, options.width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(options.width, 1))
    optimizer = torch.optim.AdamW(net.parameters())
    for step in range(options.steps):
        x = torch.randn(4, 8)
        optimizer.zero_grad()
        loss = net(x).pow(2).mean()
        gradients = torch.autograd.grad(loss, list(net.parameters()), create_graph=True)
        loss = loss + sum(each.pow(2).sum() for each in gradients)
        seen = [each.item().hex() if isinstance(each, torch.Tensor) else each
                for part in (names(), kinds(x), calls(x)) for each in part]
        loss.backward()
        optimizer.step()
        print(step, loss.item().hex(), *seen, flush=True)


if __name__ == "__main__":
    main()
