# SPDX-License-Identifier: MIT
"""The capture in C++ (agent/native): sees ops without Python, where its library fits this torch."""
import ctypes
import gc
import json
import os
import sys

import torch
from _highwater import encode, library, wire
from _highwater.sharded import local
from _highwater.stacks import FRAMEWORK, FrameLayout, frame_layout
from _highwater.tensors import parameters_of, tensors_of
from torch.nn.parameter import UninitializedTensorMixin


class Classes(ctypes.Structure):
    """See tensor_scan.h."""

    _fields_ = [("tensor", ctypes.py_object), ("lazy", ctypes.py_object),
                ("optimizer", ctypes.py_object), ("impl_offset", ctypes.c_int64)]


def impl_offset():
    """Where an object of a tensor has the address of its impl: versions of the framework differ."""
    library.hw_pause(1)
    try:
        tensor = torch.nn.Parameter(torch.empty(0), requires_grad=False)
    finally:
        library.hw_pause(0)
    for offset in range(object.__basicsize__, torch.Tensor.__basicsize__, 8):
        if ctypes.c_void_p.from_address(id(tensor) + offset).value == tensor._cdata:
            return offset
    return None


def open_native(failed=lambda error: None):
    """The library; None where the recorder has none for this framework, or it cannot be loaded: then failed(error)."""
    path = library.hw_native()
    try:
        return ctypes.PyDLL(os.fsdecode(path)) if path else None
    except OSError as error:
        failed(error)
        return None


def load_native(contents, stacks):
    """The library, ready to record; None where there is none."""
    native = open_native(lambda error: encode.send_gap("the quick capture", "its library could not be loaded: %s" % error))
    if native is None:
        return None
    longs = ctypes.POINTER(ctypes.c_int64)
    for name, result, *arguments in (
            ("open", ctypes.c_int, ctypes.c_void_p, ctypes.c_int),
            ("enter", None),
            ("leave", None),
            ("release", None),
            ("failed", ctypes.c_int),
            ("fault", ctypes.c_char_p),
            ("pause", None, ctypes.c_int),
            ("context", longs),
            ("backward_layer", None, ctypes.c_int64),
            ("stacks", None, ctypes.c_int, ctypes.POINTER(FrameLayout), ctypes.c_char_p),
            ("optimizers", None, ctypes.py_object, ctypes.POINTER(Classes), ctypes.py_object),
            ("scan", None, ctypes.py_object, ctypes.POINTER(Classes), ctypes.py_object,
             ctypes.c_int, longs, ctypes.c_int64),
            ("categorize", None, ctypes.c_int64, ctypes.c_int, ctypes.c_int64),
            ("own", None, ctypes.c_int64, ctypes.c_int, ctypes.c_int64),
            ("let_go", None, ctypes.c_int64),
            ("categorize_owned", ctypes.c_int64),
            ("categorize_gradients", None, ctypes.c_int),
            ("save_activations", None),
            ("sweep", None),
            ("tell_unknown", None, ctypes.c_int64, ctypes.c_int64),
            ("recount", None),
            ("next_epoch", None),
            ("unseen_writes", ctypes.c_char_p),
            ("step_began", None, ctypes.c_int64),
            ("figures", None, ctypes.POINTER(wire.RegistryFigures)),
            ("finals", ctypes.c_void_p, longs)):
        function = getattr(native, "hwn_" + name)
        function.restype = result
        function.argtypes = arguments
    offset = impl_offset()
    if offset is None or not native.hwn_open(library.hw_api(), contents):
        encode.send_gap("the quick capture", "its library is of another version")
        return None
    native.classes = Classes(torch.Tensor, UninitializedTensorMixin, torch.optim.Optimizer, offset)
    if stacks != wire.STACKS_OFF:
        layout = frame_layout()
        if layout is None:
            encode.send_gap("call stacks", "the frames of this Python, %s, are not where they are known to be" %
                            sys.version.partition(" ")[0])
        else:
            native.hwn_stacks(stacks, layout, os.fsencode(FRAMEWORK))
    return native


class NativeRegistry:
    """tensors.Registry, as far as the shim needs it, over the one in C++."""

    native = True

    def __init__(self, native, owned):
        """`owned`: of the registry that has been asked until now."""
        self.library = native
        self.epoch = 0
        self.values = wire.RegistryFigures()
        self.count = ctypes.c_int64()
        self.context = native.hwn_context()  # layer, phase, whether it has failed
        self.sweep = native.hwn_sweep
        self.tell_unknown = native.hwn_tell_unknown
        self.step_began = native.hwn_step_began
        self.save_activations = native.hwn_save_activations
        self.categorize_owned = native.hwn_categorize_owned
        self.categorize_gradients = native.hwn_categorize_gradients
        self.release = native.hwn_release
        self.first = list(owned.values())
        for weak, category, layer in self.first:
            tensor = weak()
            if tensor is not None:
                self.own(tensor, category, layer)

    def figures(self):
        self.library.hwn_figures(self.values)
        return self.values

    @property
    def seq(self):
        return self.figures().seq

    @property
    def uncounted(self):
        return self.figures().uncounted

    @property
    def op_peak(self):
        return self.figures().op_peak

    def next_epoch(self):
        self.epoch += 1
        self.library.hwn_next_epoch()

    def scan(self, passing, others):
        trained = []
        self.library.hwn_optimizers(gc.get_objects, self.library.classes, trained)
        self.note_all(parameters_of(trained), not others)
        if not others:
            self.note_all(tensors_of(self.first), not others)
            self.first = []
        impls = [each._cdata for each in passing if isinstance(each, torch.Tensor)]
        optimizers = []
        self.library.hwn_scan(gc.get_objects, self.library.classes, optimizers,
                              not others, (ctypes.c_int64 * len(impls))(*impls), len(impls))
        return optimizers

    def note_all(self, tensors, gradients=False):
        """As a scan that finds these."""
        self.library.hwn_scan(lambda: tensors, self.library.classes, [], gradients, None, 0)

    def finals(self):
        ids = self.library.hwn_finals(self.count)
        return ctypes.string_at(ids, 8 * self.count.value)

    def categorize(self, tensor, category, layer):
        self.library.hwn_categorize(local(tensor)._cdata, category, -1 if layer is None else layer)

    def own(self, tensor, category, layer):
        self.library.hwn_own(local(tensor)._cdata, category, -1 if layer is None else layer)

    def unseen_writes(self):
        """What code that calls no op has written in the step that ends, for the environment."""
        return json.loads(self.library.hwn_unseen_writes())

    def let_go(self, tensor):
        self.library.hwn_let_go(tensor._cdata)

    def fault(self):
        """What went wrong in there: None, "" where the recorder is gone."""
        return self.library.hwn_fault().decode() if self.library.hwn_failed() else None
