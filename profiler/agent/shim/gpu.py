# SPDX-License-Identifier: MIT
"""What CUPTI cannot tell of a process that has used its GPUs before: the segments that are there."""
import struct

import torch
from _highwater import blocking, encode, library, wire

_ACTIVITY = struct.Struct("<2BH3I4q2I")  # profiler/wire/activity.h
_OF_DEVICE = 3  # CUpti_ActivityMemoryKind
_MOST = 100_000  # segments


def segments():
    """(device, address, bytes) of what the caching allocator holds; nothing without a GPU in use."""
    cuda = getattr(torch, "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return []
    return [(each["device"], each["address"], each["total_size"])
            for each in cuda.memory_snapshot()[:_MOST]]


def start(required):
    """Where CUPTI is used, everything from here on comes from it."""
    if blocking.hw_gpu_start(required) != 0:
        return
    try:
        known = segments()
    except Exception as error:
        encode.send_gap("GPU memory taken before", "the allocator does not tell it: %r" % error)
        return
    now = library.hw_now()
    if known:
        encode.send(wire.TYPE_ACTIVITIES, struct.pack("<I", len(known)) + b"".join(
            _ACTIVITY.pack(wire.ACTIVITY_KIND_MEMORY, wire.MEMORY_DETAIL_ALLOCATE, wire.ACTIVITY_HOST_CLOCK, 0,
                           device, 0, now, now, size, address, 0, _OF_DEVICE)
            for device, address, size in known))
