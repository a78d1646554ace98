# SPDX-License-Identifier: MIT
"""Allocations that had failed in a program under DTR, and what it had made before anybody counted."""
import ctypes
import struct

import torch
from _highwater import encode, tensors, wire


class Rescues:
    """Of a step: allocations that were made after evictions or refused all the same."""

    def __init__(self):
        self.op = ""               # which asked for the first; "": none has failed
        self.bytes = 0             # of the first
        self.counts = [0, 0, 0, 0]  # made, refused, freed bytes, evictions

    def add(self, native):
        figures = (ctypes.c_int64 * 5)()
        op = native.hwl_rescue(figures).decode("utf-8", "replace")
        if not op:
            return
        if not self.op:
            self.op, self.bytes = op, figures[2]
        for place, figure in enumerate((0, 1, 3, 4)):
            self.counts[place] += figures[figure]

    def send(self, step):
        if self.op:
            made, refused, freed, evictions = self.counts
            encode.send(wire.TYPE_LIVE_RESCUE, struct.pack("<6q", step, made, refused, self.bytes, freed, evictions) +
                        encode.text(self.op))


def adopt_tensors(adopt):
    """What Python can reach, and its gradients, is counted from now on; ops show the rest."""
    with torch._C.DisableTorchFunction():
        for tensor in tensors.find_objects()[0]:
            adopt(tensor._cdata)
            gradient = tensor.grad if tensor.is_leaf else None
            if gradient is not None:
                adopt(gradient._cdata)
