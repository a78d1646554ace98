# SPDX-License-Identifier: MIT
"""Sees a forward with gradients begin where no module is called: with the first op that follows a new node of autograd."""
import ctypes
import sys

import torch
from _highwater import library
from _highwater.module_calls import compiling

OPTIMIZED = 1  # flag of a function's code: its locals belong to one call
CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_int)


def in_function():
    """Whether a custom function runs that autograd keeps: gradients are off within it, and it is no evaluation."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_name == "forward" and code.co_argcount and code.co_flags & OPTIMIZED:
            names = frame.f_locals
            context = names.get(code.co_varnames[0])
            if type(names) is dict:
                names.clear()  # a copy that stays with the frame, and would keep tensors alive
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
            path = library.hw_native()
            try:
                self.native = ctypes.PyDLL(path.decode("utf-8", "surrogateescape")) if path else None
            except OSError:
                pass  # load_native() says why
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
