# SPDX-License-Identifier: MIT
"""Files that come from outside of the program: its plans, those that are still made, and what stays (live/host)."""
import os
import time

from _highwater import encode, library, wire

AWAITED_SECONDS = 0.01  # between two looks


def programs(rank):
    """Files with the programs of that rank, or else of any process."""
    every = os.fsencode(library.hw_programs())
    own = b"%s.rank%d" % (every, max(rank, 0))
    of = own if os.path.exists(own + b".0") else every
    index = 0
    while every and os.path.exists(b"%s.%d" % (of, index)):
        yield b"%s.%d" % (of, index)
        index += 1


def awaiting(native, rank, known):
    """Waits for plans that are made while the program starts, and adds them to those that are known; None: all are."""
    file = os.fsencode(library.hw_programs()) + os.fsencode(wire.LIVE_AWAITED)
    if not os.path.exists(file):
        return None

    def wait():
        while os.path.exists(file) and not library.hw_broken():
            time.sleep(AWAITED_SECONDS)
        for path in list(programs(rank))[known:]:
            why = native.hwl_add(path).decode()
            if why:
                encode.send(wire.TYPE_FAULT, encode.text(why))
    return wait


def kept_ops():
    """What came back with other bytes in an earlier run of this program."""
    try:
        with open(os.fsencode(library.hw_programs()) + b".kept", "rb") as file:
            return file.read()
    except OSError:
        return b""
