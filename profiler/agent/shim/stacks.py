# SPDX-License-Identifier: MIT
"""Call stacks: where Python keeps its frames, for the capture in C++, and the same walk in Python."""
import ctypes
import os
import struct
import sys

import torch
from _highwater import encode, wire

NO_STACK = -1
DEEPEST = 256  # frames; of a deeper stack, the innermost ones
FRAMEWORK = os.path.join(os.path.dirname(torch.__file__), "")
_WORD = ctypes.sizeof(ctypes.c_void_p)
_MARKS = 3  # in the lowest bits of some references (Python 3.14)


class FrameLayout(ctypes.Structure):
    """See native/stacks.h."""

    _fields_ = [(name, ctypes.c_int64) for name in
                ("innermost", "indirect", "code", "instruction", "previous", "bytecode")] + [
                    ("code_type", ctypes.py_object)]


class Memory:
    """Words of this process; an address that is none raises OSError instead of ending it."""

    def __enter__(self):
        self.file = os.open("/proc/self/mem", os.O_RDONLY)
        return self

    def __exit__(self, *_):
        os.close(self.file)

    def word(self, address):
        data = os.pread(self.file, _WORD, address)
        if len(data) != _WORD:
            raise OSError("not mapped")
        return int.from_bytes(data, "little")

    def offset(self, address, words, fits):
        """Of the first word from there that fits; LookupError where none does."""
        for offset in range(0, words * _WORD, _WORD):
            try:
                if fits(self.word(address + offset)):
                    return offset
            except OSError:
                continue
        raise LookupError


def _in_frames(memory, inner, outer):
    """Where two frames have what, of which one is called by the other; and the address of the inner one's."""
    def is_code(word):
        return word & ~_MARKS == id(inner.f_code)

    def is_frame(word):
        try:
            memory.offset(word, 12, is_code)
            return True
        except LookupError:
            return False

    layout = FrameLayout(indirect=-1, code_type=type(inner.f_code))
    at = memory.offset(id(inner) + object.__basicsize__, 8, is_frame) + object.__basicsize__
    frame, calling = memory.word(id(inner) + at), memory.word(id(outer) + at)
    layout.code = memory.offset(frame, 12, is_code)
    layout.previous = memory.offset(frame, 12, lambda word: word == calling)
    begin, size = id(outer.f_code), sys.getsizeof(outer.f_code)
    layout.instruction = memory.offset(calling, 12, lambda word: begin < word < begin + size)
    layout.bytecode = memory.word(calling + layout.instruction) - begin - outer.f_lasti
    return layout, frame


def _layout(outer, thread):
    """The thread's state names the frame that reads it: nothing is called here but what is no Python."""
    with Memory() as memory:
        layout, frame = _in_frames(memory, sys._getframe(), outer)
        state = struct.unpack("@64P", os.pread(memory.file, 64 * _WORD, thread))
        if frame in state:
            layout.innermost = state.index(frame) * _WORD
            return layout
        for place, word in enumerate(state):  # Python 3.11 and 3.12: by a place on the interpreter's own stack
            try:
                beyond = struct.unpack("@2P", os.pread(memory.file, 2 * _WORD, word))
            except (OSError, OverflowError, struct.error):
                continue
            if frame in beyond:
                layout.innermost, layout.indirect = place * _WORD, beyond.index(frame) * _WORD
                return layout
    return None


def frame_layout():
    """Where this Python has what; None where it has it otherwise (before 3.11, without a global lock)."""
    state = ctypes.pythonapi.PyGILState_GetThisThreadState
    state.restype = ctypes.c_void_p
    try:
        return _layout(sys._getframe(), state())
    except (LookupError, OSError, OverflowError, struct.error):
        return None


class Stacks:
    """Stacks of the capture through Python, and what is kept of them."""

    def __init__(self, flags):
        self.mode = wire.STACKS_FULL if flags & wire.CONFIG_FULL_STACKS else \
            wire.STACKS_LINE if flags & wire.CONFIG_LINE_STACKS else wire.STACKS_OFF
        self.known = {}    # addresses of code and places in it, innermost first -> id of the stack
        self.held = {}     # that code: its address stays its own
        self.sources = {}  # (file, line, function) -> id
        self.nodes = {}    # (parent, source) -> id

    def now(self):
        if self.mode == wire.STACKS_OFF:
            return NO_STACK
        sites, frame = [], sys._getframe(1)
        innermost = frame
        while frame is not None and len(sites) < 2 * DEEPEST:
            sites.append(id(frame.f_code))
            sites.append(frame.f_lasti)
            frame = frame.f_back
        key = tuple(sites)
        stack = self.known.get(key)
        if stack is None:
            stack = self.known[key] = self.add(innermost)
        return stack

    def add(self, frame):
        frames = []
        for _ in range(DEEPEST):
            if frame is None:
                break
            code = frame.f_code
            self.held[id(code)] = code
            if not code.co_filename.startswith("<highwater "):
                frames.append((code.co_filename, frame.f_lineno or 0, getattr(code, "co_qualname", code.co_name)))
            frame = frame.f_back
        if self.mode == wire.STACKS_LINE:
            frames = [source for source in frames if not source[0].startswith(FRAMEWORK)][:1]
        stack = NO_STACK
        for source in reversed(frames):
            stack = self.node(stack, source)
        return stack

    def node(self, parent, source):
        id = self.sources.get(source)
        if id is None:
            id = self.sources[source] = len(self.sources)
            file, line, function = source
            encode.send_source(id, line, file.startswith(FRAMEWORK), file, function)
        node = self.nodes.get((parent, id))
        if node is None:
            node = self.nodes[parent, id] = len(self.nodes)
            encode.send_stack(node, parent, id)
        return node
