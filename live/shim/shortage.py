# SPDX-License-Identifier: MIT
"""Allocations that had failed in a program under DTR, and what it had made before anybody counted."""
import struct

import torch
from _highwater import encode, tensors, wire


class Rescues:
    """Of a step: allocations that were made after evictions or refused all the same."""

    def __init__(self):
        self.op = ""               # which asked for the first; "": none has failed
        self.bytes = 0             # of the first
        self.sums = wire.LiveRescue()

    def add(self, native):
        figures = wire.LiveRescue()
        op = native.hwl_rescue(figures).decode("utf-8", "replace")
        if not op:
            return
        if not self.op:
            self.op, self.bytes = op, figures.first_bytes
        for name, _ in figures._fields_:
            setattr(self.sums, name, getattr(self.sums, name) + getattr(figures, name))

    def send(self, step):
        if self.op:
            sums = self.sums
            encode.send(wire.TYPE_LIVE_RESCUE, struct.pack(
                "<6q", step, sums.made, sums.refused, self.bytes, sums.freed_bytes, sums.evictions) +
                        encode.text(self.op))


def adopt_tensors(adopt):
    """What Python can reach, and its gradients, is counted from now on; ops show the rest."""
    with torch._C.DisableTorchFunction():
        for tensor in tensors.find_objects()[0]:
            adopt(tensor._cdata)
            gradient = tensor.grad if tensor.is_leaf else None
            if gradient is not None:
                adopt(gradient._cdata)
