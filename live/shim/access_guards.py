# SPDX-License-Identifier: MIT
"""Who looks at tensors' bytes past the dispatcher: methods of tensors and storages, CUDA graphs, and extensions that take
tensors from Python."""
import ctypes
import importlib.machinery
import os
import re
import sys
import weakref

import torch
from _highwater import library

# They give out an address of the bytes, which stays known, ...
ADDRESSES = ("numpy", "data_ptr", "__dlpack__", "share_memory_", "__array__")
# ... or the storage, whose methods give it out, ...
STORAGES = ("storage", "untyped_storage", "_typed_storage")
STORAGE_ADDRESSES = ("data_ptr", "_share_fd_cpu_", "_share_filename_cpu_", "share_memory_")
# ... or the bytes.
COPIES = ("tolist", "__reduce_ex__")
# They write the bytes, by no op.
WRITES = ("apply_", "map_", "map2_")
# Of storages: they give bytes others' values, or take them away.
CHANGES = ("resize_", "copy_", "fill_", "__setitem__", "byteswap", "_set_from_file")


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


def raising(function):
    """The runtime's function: what it says is wrong is raised in the program."""
    def told(*arguments):
        why = function(*arguments)
        if why:
            raise RuntimeError(why.decode("utf-8", "replace"))

    return told


class AccessGuards:
    def __init__(self, native):
        self.touch = raising(native.hwl_touch)    # address of a tensor's impl, and whether its bytes' address stays known
        self.change = raising(native.hwl_change)  # address of a storage's impl
        self.hand = raising(native.hwl_hand)      # address of a tensor's impl
        self.touch_storage = raising(native.hwl_touch_storage)  # address of a storage's impl
        self.write = raising(native.hwl_change_tensor)  # address of a tensor's impl
        self.native = native
        self.patches = Patches()
        self.extensions = self.regions = None

    def open(self):
        for names, stays in ((ADDRESSES, True), (COPIES, False)):
            for name in names:
                if hasattr(torch.Tensor, name):
                    self.patches.set(torch.Tensor, name,
                                     guard(getattr(torch.Tensor, name), torch.Tensor, self.touching(stays)))
        for name in STORAGES:
            if hasattr(torch.Tensor, name):
                self.patches.set(torch.Tensor, name, guard(getattr(torch.Tensor, name), torch.Tensor,
                                                           lambda tensor: self.hand(address(tensor))))
        storages = getattr(torch, "UntypedStorage", None)
        for name in STORAGE_ADDRESSES if storages is not None else ():
            if hasattr(storages, name):
                self.patches.set(storages, name, guard(getattr(storages, name), storages,
                                                       lambda storage: self.touch_storage(address(storage))))
        for name in WRITES:
            if hasattr(torch.Tensor, name):
                self.patches.set(torch.Tensor, name, guard(getattr(torch.Tensor, name), torch.Tensor,
                                                           lambda tensor: self.write(address(tensor))))
        for name in CHANGES:
            if hasattr(torch.UntypedStorage, name):
                self.patches.set(torch.UntypedStorage, name, guard(
                    getattr(torch.UntypedStorage, name), torch.UntypedStorage, lambda storage: self.change(address(storage))))
        for holder in (torch, torch.utils.dlpack):
            if hasattr(holder, "to_dlpack"):
                self.patches.set(holder, "to_dlpack", guard(holder.to_dlpack, torch.Tensor, self.touching(True)))
        set_state = torch.random.set_rng_state
        for holder in (torch, torch.random):
            self.patches.set(holder, "set_rng_state", guard(set_state, torch.Tensor, self.touching(False)))
        self.extensions = Extensions(self.touch, self.native)
        self.regions = Regions(self.patches, self.touch, self.native.hwl_region)
        Scripts(self.patches, self.touch, self.native.hwl_region)
        load = importlib.machinery.ExtensionFileLoader.exec_module

        def exec_module(loader, module):
            load(loader, module)
            if self.extensions is not None:
                self.extensions.take(module, loader.path)

        self.patches.set(importlib.machinery.ExtensionFileLoader, "exec_module", exec_module)

    def close(self):
        self.patches.undo()
        if self.extensions is not None:
            self.extensions.restore()
            self.extensions = None

    def touching(self, stays):
        touch = self.touch
        return lambda tensor: touch(address(tensor), stays)


def guard(method, kind, tell):
    """The method, but `tell` hears of the object first where it is of that kind."""
    def guarded(thing, *arguments, **named):
        if isinstance(thing, kind):
            tell(thing)
        return method(thing, *arguments, **named)

    guarded.__name__ = getattr(method, "__name__", "guarded")
    guarded.__doc__ = method.__doc__
    return guarded


def watch_graphs(patches, native):
    """A CUDA graph's kernels read and write memory without any op: before it is captured or runs, the runtime is told."""
    interrupt = raising(native.hwl_interrupt)
    graph = getattr(getattr(torch, "cuda", None), "CUDAGraph", None)
    for name, what in (("capture_begin", b"a CUDA graph is captured"), ("replay", b"a CUDA graph runs")):
        method = getattr(graph, name, None)
        if method is not None:
            patches.set(graph, name, guard(method, object, lambda _, what=what: interrupt(what)))


class Region:
    """While it is entered, code of that kind works on memory by no op."""

    def __init__(self, tell, what):
        self.tell, self.what = tell, what

    def __enter__(self):
        self.tell(self.what)

    def __exit__(self, *_):
        self.tell(b"")


class Regions:
    """What torch.compile has made with inductor: kernels that read and write memory by no op."""

    # Modules, in older versions or newer ones, with the class of what it makes of a graph.
    MODULES = ("torch._inductor.output_code", "torch._inductor.codecache", "torch._inductor.compile_fx")
    CLASSES = ("CompiledFxGraph", "CompiledAOTI")

    def __init__(self, patches, touch, region):
        self.patches, self.touch, self.region = patches, touch, region
        for name in self.MODULES:
            if name in sys.modules:
                self.patch(sys.modules[name])
        loader = importlib.machinery.SourceFileLoader
        load = loader.exec_module

        def exec_module(self_, module):
            load(self_, module)
            if module.__name__ in self.MODULES:
                self.patch(module)

        patches.set(loader, "exec_module", exec_module)

    def patch(self, module):
        for name in self.CLASSES:
            graph = getattr(module, name, None)
            call = getattr(graph, "__call__", None)
            if graph is not None and call is not None and not hasattr(call, "region"):
                self.patches.set(graph, "__call__", self.around(call))

    def around(self, call):
        def region(graph, inputs, *arguments, **named):
            for tensor in tensors_in(inputs):
                self.touch(address(tensor), True)
            with Region(self.region, b"torch.compile"):
                return call(graph, inputs, *arguments, **named)

        region.region = True
        return region


class Scripts:
    """What torch.jit has made: its interpreter reads a tensor's bytes for a list, and on a GPU it fuses kernels."""

    def __init__(self, patches, touch, region):
        self.touch, self.region = touch, region
        self.reads = weakref.WeakKeyDictionary()
        for name in ("ScriptFunction", "ScriptMethod"):
            kind = getattr(torch._C, name, None)
            if kind is not None:
                patches.set(kind, "__call__", self.around(kind.__call__))

    def past_the_dispatcher(self, script):
        try:
            known = self.reads.get(script)
            if known is None:
                known = self.reads[script] = "prim::tolist" in str(script.inlined_graph)
        except (AttributeError, RuntimeError, TypeError):
            return True
        return known or (torch.cuda.is_initialized() and torch._C._jit_texpr_fuser_enabled())

    def around(self, call):
        def scripted(script, *arguments, **named):
            if not self.past_the_dispatcher(script):
                return call(script, *arguments, **named)
            for tensor in tensors_in((arguments, named)):
                self.touch(address(tensor), False)
            with Region(self.region, b"TorchScript"):
                return call(script, *arguments, **named)

        return scripted


def address(thing):
    """Of what a tensor or a storage is in C++. A subclass of the program's does not hear of it."""
    with torch._C.DisableTorchFunction():
        return thing._cdata


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from tensors_in(each)
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))


class Functions:
    """Functions of extensions: while one runs, what ops make it may fill. An object of a C function has the address of
    its method's description (PyCFunctionObject.m_ml), which has that of the code (PyMethodDef.ml_meth) and how it is
    called (ml_flags); it is looked up at each call."""

    KEYWORDS, FAST = 0x3, 0x82  # METH_VARARGS | METH_KEYWORDS, METH_FASTCALL | METH_KEYWORDS
    BUILTIN = type(len)

    def __init__(self, wrap_function):
        self.wrap_function = wrap_function
        self.wrapped = []  # address of ml_meth, what was there, the function

    def wrap(self, module):
        if sys.implementation.name != "cpython" or object.__basicsize__ != 16:
            return
        for each in list(vars(module).values()):
            if isinstance(each, type):
                for inner in list(vars(each).values()):
                    self.wrap_one(getattr(inner, "__func__", inner))
            else:
                self.wrap_one(each)

    def wrap_one(self, function):
        if type(function) is not self.BUILTIN:
            return
        description, own = (ctypes.c_uint64 * 2).from_address(id(function) + 16)
        code, flags = ctypes.c_uint64.from_address(description + 8), ctypes.c_int.from_address(description + 16).value
        if flags not in (self.KEYWORDS, self.FAST) or own == 0 or code.value == 0:
            return
        self.wrapped.append((code, code.value, function))
        code.value = self.wrap_function(own, code.value, flags == self.FAST)

    def restore(self):
        for code, before, _ in reversed(self.wrapped):
            code.value = before
        self.wrapped = []


class Extensions:
    """Libraries that take tensors as arguments: their bindings have the framework's pybind caster turn an object into
    a tensor (type_caster<at::Tensor>::load of torch/csrc/utils/pybind.h), or ask the framework's class whether it is
    one (THPVariable_Check of torch/csrc/autograd/python_variable.h). They get a caster and a class of ours, which
    bring the bytes first. What they give to Python goes through the same caster or THPVariable_Wrap: they may have
    written it by no op."""

    RESULTS = ("_ZN8pybind116detail11type_casterIN2at6TensorEvE4castERKS3_NS_19return_value_policyENS_6handleE",
               "_Z16THPVariable_WrapN2at10TensorBaseE")
    CASTER = "_ZN8pybind116detail11type_casterIN2at6TensorEvE4loadENS_6handleEb"
    CLASS = "THPVariableClass"

    def __init__(self, touch, native):
        class Asked(type):
            def __instancecheck__(cls, thing):
                if not isinstance(thing, torch.Tensor):
                    return False
                touch(address(thing), True)
                return True

        self.substitute = Asked("Tensor", (), {})
        self.pointer = ctypes.c_void_p(id(self.substitute))
        self.ways = []  # symbol, where it leads, where it leads now
        framework = self.framework()
        ways = [(self.CASTER, native.hwl_wrap_caster), (self.CLASS, lambda _: ctypes.addressof(self.pointer))]
        ways += [(symbol, lambda original, which=which: native.hwl_wrap_result(which, original))
                 for which, symbol in enumerate(self.RESULTS)]
        for symbol, ours in ways:
            try:
                original = ctypes.addressof(ctypes.c_char.in_dll(framework, symbol))
            except ValueError:
                continue  # a framework without it has no extensions that use it
            self.ways.append((symbol, original, ours(original)))
        self.functions = Functions(native.hwl_wrap_function)
        loaders = importlib.machinery.ExtensionFileLoader
        for module in list(sys.modules.values()):
            loader = getattr(getattr(module, "__spec__", None), "loader", None)
            if isinstance(loader, loaders) and not loader.path.startswith(os.path.dirname(torch.__file__) + os.sep):
                self.take(module, loader.path)
        self.redirect("libtorch", True)

    @staticmethod
    def framework():
        with open("/proc/self/maps") as maps:
            paths = re.findall(r"(/\S*libtorch_python\.so\S*)$", maps.read(), re.MULTILINE)
        return ctypes.PyDLL(paths[0] if paths else None)

    def take(self, module, path):
        """A library that was loaded as this module."""
        if self.redirect(os.path.basename(path), False):
            self.functions.wrap(module)

    def redirect(self, libraries, others):
        """In how many places."""
        return sum(library.hw_redirect(os.fsencode(libraries), others, symbol.encode(), original, ours)
                   for symbol, original, ours in self.ways)

    def restore(self):
        self.functions.restore()
        for symbol, original, ours in self.ways:
            library.hw_redirect(b"libtorch", True, symbol.encode(), ours, original)
