#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Writes an allocator's snapshot as torch.cuda.memory._snapshot() has it: a transformer whose steps go on until there are
so many entries, with the call stack of each."""
import argparse
import pickle
import random

LAYERS = 48
# What makes the tensors of a block: file, function, line, MiB.
MADE = (("attention.py", "qkv", 41, 24), ("attention.py", "scores", 44, 32), ("attention.py", "softmax", 45, 32),
        ("attention.py", "context", 47, 8), ("attention.py", "project", 49, 8), ("mlp.py", "widen", 18, 32),
        ("mlp.py", "gelu", 19, 32), ("mlp.py", "narrow", 20, 8))


def frame(file, name, line):
    return {"filename": "/home/someone/train/" + file, "name": name, "line": line}


def stack(*innermost_first):
    return [*innermost_first, frame("model.py", "forward", 77), frame("train.py", "step", 31), frame("train.py", "main", 58)]


class Trace:
    def __init__(self):
        self.entries, self.free, self.top, self.time = [], {}, 0x7f0000000000, 0

    def note(self, action, address, size, frames):
        self.time += 3
        self.entries.append({"action": action, "addr": address, "size": size, "stream": 0, "frames": frames, "time_us": self.time})

    def alloc(self, size, frames):
        """The address of a block; one of that size that is free, if there is one."""
        if self.free.get(size):
            address = self.free[size].pop()
        else:
            address, self.top = self.top, self.top + size
            self.note("segment_alloc", address, size, frames)
        self.note("alloc", address, size, frames)
        return address

    def let_go(self, address, size):
        self.note("free_requested", address, size, [])
        self.note("free_completed", address, size, [])
        self.free.setdefault(size, []).append(address)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", help="where to write it")
    parser.add_argument("entries", type=int, nargs="?", default=2500000, help="default: %(default)s")
    options = parser.parse_args()
    trace, draw = Trace(), random.Random(1)
    blocks = [[stack(frame(file, name, line), frame("model.py", "block", 60)) for file, name, line, _ in MADE] for _ in range(LAYERS)]
    for _ in range(LAYERS):
        trace.alloc(96 << 20, [frame("model.py", "__init__", 22), frame("train.py", "main", 50)])
    backward = stack(frame("train.py", "backward", 33))
    while len(trace.entries) < options.entries:
        length = draw.choice((2, 3, 4))  # of the batch's sequences, in quarters
        saved = []
        for block in blocks:
            for (_, _, _, mib), frames in zip(MADE, block):
                size = mib * length << 18
                saved.append((trace.alloc(size, frames), size))
        for address, size in reversed(saved):
            gradient = trace.alloc(size, backward)
            trace.let_go(address, size)
            trace.let_go(gradient, size)
    with open(options.file, "wb") as file:
        pickle.dump({"segments": [], "device_traces": [trace.entries]}, file, protocol=4)


if __name__ == "__main__":
    main()
