# SPDX-License-Identifier: MIT
"""What CUPTI cannot tell of a process that has used its GPUs before: the segments that are there. What a plan in the
program asks of the GPU's allocator."""
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


def when_initialized(work):
    """At once where CUDA is in use, else before the first tensor is made there. Nothing is raised into the program."""
    def guarded():
        try:
            work()
        except Exception:
            pass

    call = getattr(getattr(torch, "cuda", None), "_lazy_call", None)
    if call is not None:
        call(guarded)


def count_blocks(count, keep_limit):
    """Blocks of the caching allocator, from the first one on. `count`: does it, and says why it cannot. `keep_limit`: lets
    the allocator keep to the limit itself, if it can; else it is told how much it may take from the driver."""
    def begin():
        why = count().decode("utf-8", "replace")
        if why:
            encode.send_gap("live bytes on the GPU", why)
        if not keep_limit():
            limit(library.hw_cap())

    when_initialized(begin)


_limited = 0  # GPUs


def limit(most):
    """Each GPU's allocator takes no more than so many bytes from its driver; 0: what there is."""
    global _limited
    _limited = torch.cuda.device_count() if most else 0
    for device in range(_limited):
        whole = torch.cuda.get_device_properties(device).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, most / whole), device)


def unlimit():
    """As where limit() has never been called; the program's own limit goes, too."""
    global _limited
    count, _limited = _limited, 0
    try:
        for device in range(count):
            torch.cuda.set_per_process_memory_fraction(1.0, device)
    except RuntimeError:
        pass  # a forked process, which cannot use them


_missed = False


def miss_blocks():
    """The capture through Python does not see the allocator's blocks: a gap, once, where a GPU is in use."""
    global _missed
    cuda = getattr(torch, "cuda", None)
    if not _missed and cuda is not None and cuda.is_initialized():
        _missed = True
        encode.send_gap("workspaces of ops on the GPU", "only the capture in C++ counts them")
