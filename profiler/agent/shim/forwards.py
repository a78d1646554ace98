# SPDX-License-Identifier: MIT
"""Sees a forward with gradients begin where no module is called: with the first op that follows a new node of autograd."""
import ctypes
import sys

import torch
from _highwater.module_calls import compiling
from _highwater.native import open_native
from _highwater.stacks import Memory

OPTIMIZED = 1  # flag of a function's code: its locals belong to one call
CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_int)


class FirstArguments:
    """Of calls that go on. Before Python 3.13 `f_locals` is a dictionary that the function's own locals() gives out, too:
    to ask for it changes that one. So they are read where the frame has them."""

    def __init__(self):
        self.proxies = sys.version_info >= (3, 13)
        self.frame = self.argument = None  # offsets: of the address of the frame proper, where there is one, and therein
        if not self.proxies:
            try:
                self.frame, self.argument = self.places(object())
            except (LookupError, OSError, OverflowError):
                pass  # none is known

    @staticmethod
    def places(argument):
        frame, wanted = sys._getframe(), id(argument)
        code, within, place = id(frame.f_code), id(frame), None

        def has_code(word):
            try:
                return memory.offset(word, 12, lambda each: each == code) is not None
            except LookupError:
                return False

        with Memory() as memory:
            if sys.version_info >= (3, 11):
                place = object.__basicsize__ + memory.offset(within + object.__basicsize__, 8, has_code)
                within = memory.word(within + place)
            return place, memory.offset(within, 80, lambda each: each == wanted)

    def of(self, frame):
        """None where it is not known."""
        code = frame.f_code
        name = code.co_varnames[0]
        if self.proxies:
            return frame.f_locals.get(name)
        if self.argument is None:
            return None
        at = id(frame) if self.frame is None else ctypes.c_void_p.from_address(id(frame) + self.frame).value
        cell = name in code.co_cellvars
        moved = code.co_nlocals + code.co_cellvars.index(name) if cell and self.frame is None else 0
        address = ctypes.c_void_p.from_address(at + self.argument + moved * ctypes.sizeof(ctypes.c_void_p)).value
        thing = None if address is None else ctypes.cast(address, ctypes.py_object).value
        return thing.cell_contents if cell and type(thing) is CELL else thing


CELL = type((lambda thing: (lambda: thing).__closure__[0])(None))
_first = FirstArguments()


def in_function():
    """Whether a custom function runs that autograd keeps: gradients are off within it, and it is no evaluation."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_name == "forward" and code.co_argcount and code.co_flags & OPTIMIZED:
            context = _first.of(frame)
            if issubclass(type(context), torch._C._FunctionBase) and context.next_functions:
                return True
        frame = frame.f_back
    return False


class Forwards:
    def __init__(self, begins):
        """`begins` returns False where what it is told of is no forward of the training."""
        self.begins = begins
        self.callback = CALLBACK(self.node)  # as long as the runtime may call it
        self.native = None
        self.asked = False

    def load(self):
        if not self.asked:
            self.asked = True
            self.native = open_native()  # load_native() says why there is none
            if self.native is not None:
                self.native.hwn_await_forward.argtypes = [ctypes.c_void_p]
                self.native.hwn_nodes.restype = ctypes.c_int64
        return self.native

    def watch(self):
        """From now on, in this thread."""
        if self.load() is not None:
            self.native.hwn_await_forward(self.callback)

    def unwatch(self):
        if self.native is not None:
            self.native.hwn_await_forward(None)

    def nodes(self):
        """How many this thread has made."""
        return self.native.hwn_nodes() if self.load() is not None else 0

    def node(self, gradients):
        try:
            begins = not compiling() and (gradients or in_function()) and self.begins() is not False
        except Exception:
            begins = True
        if not begins:
            self.watch()
