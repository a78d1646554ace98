# SPDX-License-Identifier: MIT
"""What the dispatch mode itself adds to the time of an op, so that small ops do not read too long."""
import ctypes

import torch
from _highwater import library, wire

ROUNDS = 40
FLOOR_NS = 1000  # about what the cheapest op costs when it is called without Python


class Timing:
    """Times ops that do next to nothing in the way captured ops are timed.

    The quickest of many rounds is what Python, the mode and the dispatcher always cost: with a
    fresh result, which gets a Python object of its own, and without.
    """

    def __init__(self):
        self.fresh_ns = 0
        self.plain_ns = 0

    def calibrate(self):
        """Called outside of the mode: a captured op runs with the mode set aside, too."""
        library.hw_pause(1)
        try:
            sample = torch.ops.aten.zeros.default([1])
            self.fresh_ns = self.quickest(torch.ops.aten.detach.default, (sample,))
            self.plain_ns = self.quickest(torch.ops.aten.zero_.default, (sample,))
        finally:
            library.hw_pause(0)

    def quickest(self, func, args):
        window = wire.OpWindow()
        best = 1 << 62
        for _ in range(ROUNDS):
            library.hw_begin(ctypes.byref(window))
            out = func(*args)
            library.hw_end(ctypes.byref(window))
            best = min(best, window.end_ns - window.begin_ns)
            del out
        return max(0, best - FLOOR_NS)

    def corrected(self, duration, fresh):
        return max(min(duration, FLOOR_NS), duration - (self.fresh_ns if fresh else self.plain_ns))
