# SPDX-License-Identifier: MIT
"""Who looks at tensors' bytes past the dispatcher: methods of tensors and storages, CUDA graphs, and extensions that take
tensors from Python."""
import ctypes
import importlib.machinery
import os
import re

import torch
from _highwater import library

# They give out an address of the bytes, which stays known, ...
ADDRESSES = ("numpy", "data_ptr", "storage", "untyped_storage", "_typed_storage", "__dlpack__", "share_memory_",
             "__array__")
# ... or the bytes.
COPIES = ("tolist", "__reduce_ex__")
# Of storages: they give bytes others' values, or take them away.
CHANGES = ("resize_", "copy_", "fill_", "__setitem__")


class Patches:
    """Attributes that are others for a while."""

    def __init__(self):
        self.made = []

    def set(self, holder, name, value):
        self.made.append((holder, name, holder.__dict__.get(name), value))
        setattr(holder, name, value)

    def undo(self):
        for holder, name, before, value in reversed(self.made):
            if holder.__dict__.get(name) is value:
                if before is None:
                    delattr(holder, name)
                else:
                    setattr(holder, name, before)
        self.made = []


class Doors:
    def __init__(self, touch, change, wrap_caster):
        self.touch = touch  # address of a tensor's impl, and whether its bytes' address stays known
        self.change = change  # address of a storage's impl
        self.wrap_caster = wrap_caster  # address of the framework's caster; that of one that touches
        self.patches = Patches()
        self.extensions = None

    def open(self):
        for names, stays in ((ADDRESSES, True), (COPIES, False)):
            for name in names:
                if hasattr(torch.Tensor, name):
                    self.patches.set(torch.Tensor, name,
                                     guard(getattr(torch.Tensor, name), torch.Tensor, self.touching(stays)))
        for name in CHANGES:
            if hasattr(torch.UntypedStorage, name):
                self.patches.set(torch.UntypedStorage, name, guard(
                    getattr(torch.UntypedStorage, name), torch.UntypedStorage, lambda storage: self.change(storage._cdata)))
        for holder in (torch, torch.utils.dlpack):
            if hasattr(holder, "to_dlpack"):
                self.patches.set(holder, "to_dlpack", guard(holder.to_dlpack, torch.Tensor, self.touching(True)))
        self.extensions = Extensions(self.touch, self.wrap_caster)
        load = importlib.machinery.ExtensionFileLoader.exec_module

        def exec_module(loader, module):
            load(loader, module)
            if self.extensions is not None:
                self.extensions.redirect(os.path.basename(loader.path), False)

        self.patches.set(importlib.machinery.ExtensionFileLoader, "exec_module", exec_module)

    def close(self):
        self.patches.undo()
        if self.extensions is not None:
            self.extensions.restore()
            self.extensions = None

    def touching(self, stays):
        touch = self.touch
        return lambda tensor: touch(tensor._cdata, stays)


def guard(method, kind, tell):
    """The method, but `tell` hears of the object first where it is of that kind."""
    def guarded(thing, *arguments, **named):
        if isinstance(thing, kind):
            tell(thing)
        return method(thing, *arguments, **named)

    guarded.__name__ = getattr(method, "__name__", "guarded")
    guarded.__doc__ = method.__doc__
    return guarded


def watch_graphs(patches, interrupt):
    """A CUDA graph's kernels read and write memory without any op: before it is captured or runs, `interrupt` is told."""
    graph = getattr(getattr(torch, "cuda", None), "CUDAGraph", None)
    for name, what in (("capture_begin", b"a CUDA graph is captured"), ("replay", b"a CUDA graph runs")):
        method = getattr(graph, name, None)
        if method is not None:
            patches.set(graph, name, guard(method, object, lambda _, what=what: interrupt(what)))


class Extensions:
    """Libraries that take tensors as arguments: their bindings have the framework's pybind caster turn an object into
    a tensor (type_caster<at::Tensor>::load of torch/csrc/utils/pybind.h), or ask the framework's class whether it is
    one (THPVariable_Check of torch/csrc/autograd/python_variable.h). They get a caster and a class of ours, which
    bring the bytes first."""

    CASTER = "_ZN8pybind116detail11type_casterIN2at6TensorEvE4loadENS_6handleEb"
    CLASS = "THPVariableClass"

    def __init__(self, touch, wrap_caster):
        class Asked(type):
            def __instancecheck__(cls, thing):
                if not isinstance(thing, torch.Tensor):
                    return False
                touch(thing._cdata, True)
                return True

        self.substitute = Asked("Tensor", (), {})
        self.pointer = ctypes.c_void_p(id(self.substitute))
        self.ways = []  # symbol, where it leads, where it leads now
        framework = self.framework()
        for symbol, ours in ((self.CASTER, wrap_caster), (self.CLASS, lambda _: ctypes.addressof(self.pointer))):
            try:
                original = ctypes.addressof(ctypes.c_char.in_dll(framework, symbol))
            except ValueError:
                continue  # a framework without it has no extensions that use it
            self.ways.append((symbol, original, ours(original)))
        self.redirect("libtorch", True)

    @staticmethod
    def framework():
        with open("/proc/self/maps") as maps:
            paths = re.findall(r"(/\S*libtorch_python\.so\S*)$", maps.read(), re.MULTILINE)
        return ctypes.PyDLL(paths[0] if paths else None)

    def redirect(self, libraries, others):
        for symbol, original, ours in self.ways:
            library.hw_redirect(os.fsencode(libraries), others, symbol.encode(), original, ours)

    def restore(self):
        for symbol, original, ours in self.ways:
            library.hw_redirect(b"libtorch", True, symbol.encode(), ours, original)
