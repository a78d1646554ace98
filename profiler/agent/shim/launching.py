# SPDX-License-Identifier: MIT
"""Programs that start the training in a process of their own: a launcher written in Python, torch.multiprocessing.

What brings the agent into a process stands in its environment, so the processes that it starts have it, too. It stays
there until torch is imported: what a training starts besides (workers, tools) is left alone.
"""
import os
import re
import sys

from _highwater import wire

_taken = {}


def leave_environment():
    """What this process starts from now on is left alone."""
    if wire.SOCKET_VARIABLE not in os.environ:
        return
    for name in (wire.SOCKET_VARIABLE, wire.PRELOAD_VARIABLE, "LD_PRELOAD"):
        _taken[name] = os.environ.pop(name, "")
    if _taken[wire.PRELOAD_VARIABLE]:
        os.environ["LD_PRELOAD"] = _taken[wire.PRELOAD_VARIABLE]


def rank():
    """Among the processes of a distributed training, as torchrun and others say, or as torch.multiprocessing numbers
    the processes that it starts; -1: of none."""
    try:
        return int(os.environ["RANK"])
    except (KeyError, ValueError):
        pass
    processes = sys.modules.get("multiprocessing.process")
    name = processes.current_process().name if processes else ""
    numbered = re.fullmatch(r"(?:Spawn|ForkServer)Process-(\d+)", name)
    return int(numbered.group(1)) - 1 if numbered else -1


def world_size():
    """How many processes the training has on all machines; -1: not told."""
    try:
        return int(os.environ["WORLD_SIZE"])
    except (KeyError, ValueError):
        return -1


def run():
    """The same on all machines of one run, and another one in the next run; empty where nothing tells it."""
    where = os.environ.get("MASTER_ADDR", ""), os.environ.get("MASTER_PORT", "")
    if not all(where):
        return ""
    return "%s@%s:%s" % (os.environ.get("TORCHELASTIC_RUN_ID", "none"), *where)


def watch_spawn(step_aside):
    """Before torch.multiprocessing starts processes, `step_aside` says whether these train in the place of this one."""
    spawning = sys.modules.get("torch.multiprocessing.spawn")
    plain = getattr(spawning, "start_processes", None)
    if plain is None or not _taken or hasattr(plain, "highwater"):
        return

    def start_processes(*given, **named):
        method = named.get("start_method", given[5] if len(given) > 5 else "spawn")
        if method == "fork" or not step_aside():
            return plain(*given, **named)
        os.environ.update(_taken)
        try:
            return plain(*given, **named)
        finally:
            leave_environment()

    start_processes.highwater = True
    for module in (spawning, sys.modules["torch.multiprocessing"]):
        if getattr(module, "start_processes", None) is plain:
            module.start_processes = start_processes
