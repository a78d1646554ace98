# SPDX-License-Identifier: MIT
"""Who looks at tensors' bytes past the dispatcher: methods of tensors and storages, CUDA graphs, and extensions that take
tensors from Python."""
import ctypes
import functools
import importlib.machinery
import os
import re
import sys
import weakref

import torch
from _highwater import library
from _highwater.fused_kernels import FusedKernels
from _highwater.native import impl_offset
from _highwater.patches import Imports, Patches, after_import, owner_of, stand_for

# They give out an address of the bytes, which stays known, as all with "data_ptr" in their names do, ...
ADDRESSES = ("numpy", "__dlpack__", "share_memory_", "__array__")
# ... or the storage, whose methods give it out, ...
STORAGES = ("storage", "untyped_storage", "_typed_storage", "_storage")
# ... or the bytes.
COPIES = ("tolist", "__reduce_ex__")
# They write the bytes, by no op.
WRITES = ("apply_", "map_", "map2_")
# Of storages: what begins so gives out the address. What else they do with bytes is taken for a change, ...
STORAGE_ADDRESSES = ("_share", "share_memory_", "_get_shared_fd", "data_ptr")
# ... but for these, which at most read.
HARMLESS = frozenset((
    "bfloat16", "bool", "byte", "char", "clone", "complex_double", "complex_float", "cpu", "cuda", "device", "double",
    "element_size", "filename", "float", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "from_buffer",
    "from_file", "get_device", "half", "hpu", "int", "is_cuda", "is_hpu", "is_pinned", "is_shared", "is_sparse", "is_sparse_csr",
    "long", "mps", "nbytes", "new", "pin_memory", "resizable", "short", "size", "to", "tolist", "type", "untyped",
    "_cdata", "_checkpoint_offset", "_expired", "_fake_device", "_fix_weakref", "_free_weak_ref", "_get_filename",
    "_release_ipc_counter", "_release_ipc_counter_cuda", "_shared_decref", "_shared_incref", "_to", "_weak_ref",
    "_write_file"))
STORAGE_WRITES = ("__setitem__", "__delitem__")
# Functions of torch._C that give out an address.
FUNCTIONS = ("_to_dlpack", "_to_dlpack_versioned", "_data_address", "_storage_address",
             "_tensors_data_ptrs_at_indices_equal")
# Functions of torch that read their tensors by no op, or write them.
READERS = re.compile("fbgemm_|quantized_(lstm|gru|rnn_relu|rnn_tanh)_cell|_rowwise_prune|choose_qparams_optimized")
WRITERS = re.compile("_saturate_weight_to_fp16|_sobol_engine_")
# Functions in C by which other libraries get the bytes.
EXCHANGE = "__dlpack_c_exchange_api__"
# They read bytes of whatever belongs to what they get, in C++: of classes of torch._C, or of itself.
SAVES = {"ScriptModule": ("save", "save_to_buffer", "_save", "_save_for_mobile", "_save_to_buffer_for_mobile"),
         None: ("_pickle_save", "_save_parameters", "_save_jit_module", "_save_jit_module_to_bytes", "_gds_save_storage",
                "_unsafe_reset_storage")}


def raising(function):
    """The runtime's function: what it says is wrong is raised in the program."""
    def told(*arguments):
        why = function(*arguments)
        if why:
            raise RuntimeError(why.decode("utf-8", "replace"))

    return told


def of_first(kind, tell):
    """`tell` hears of a call's first argument where it is of that kind."""
    def check(*arguments, **_):
        if arguments and isinstance(arguments[0], kind):
            tell(arguments[0])

    return check


def of_all(kind, tell):
    """`tell` hears of each argument of a call that is of that kind."""
    def check(*arguments, **named):
        for each in things_in((arguments, named), kind):
            tell(each)

    return check


def without(tell):
    """`tell` does not hear of a call's arguments."""
    return lambda *_, **__: tell()


class AccessGuards:
    """`region_entered` hears of what torch.compile has made before it runs."""

    def __init__(self, native, region_entered):
        self.touch = raising(native.hwl_touch)    # address of a tensor's impl, and whether its bytes' address stays known
        self.change = raising(native.hwl_change)  # address of a storage's impl
        self.hand = raising(native.hwl_hand)      # address of a tensor's impl
        self.touch_storage = raising(native.hwl_touch_storage)  # address of a storage's impl
        self.write = raising(native.hwl_change_tensor)  # address of a tensor's impl
        self.native, self.region_entered = native, region_entered
        self.patches = Patches()
        self.extensions = self.regions = self.calls = self.kernels = None
        self.acting = False

    def open(self, running):
        """`running`: the program is within a step, and no plan acts before begin()."""
        self.acting = not running
        self.guard_tensors()
        if hasattr(torch, "UntypedStorage"):
            self.guard_storages(torch.UntypedStorage)
        self.guard_functions()
        for holder, name in ((torch.library.Library, "impl"), (type(torch.ops), "load_library")):
            self.patches.stand_for(holder, name, after=without(self.native.hwl_kernels_changed))
        for holder in (torch, torch.random):
            self.guard_each(holder, ("set_rng_state",), torch.Tensor, self.touching(False), of_all)
        self.extensions = Extensions(self.touch, self.native)
        self.kernels = FusedKernels(self.patches)
        self.kernels.watch(self.kernels.visible())
        self.regions = Regions(self.patches, self.touch, self.native.hwl_region, self.region_entered, self)
        self.calls = RemoteCalls(self.patches, self.touching(True), self.native.hwl_enter_beside)
        Imports(self.patches, {**self.regions.actions, **self.calls.actions})
        Scripts(self.patches, self.touch, self.native.hwl_region)
        after_import(self.patches, importlib.machinery.ExtensionFileLoader, self.loaded)

    def begin(self):
        """This thread trains, and a step begins."""
        self.kernels.begin()
        self.kernels.watch(self.kernels.visible())
        self.acting = True

    def guard_each(self, holder, names, kind, tell, of=of_first):
        """`tell` hears of things of that kind before one of these methods or functions runs on them."""
        for name in names:
            if hasattr(holder, name):
                self.patches.stand_for(owner_of(holder, name), name, of(kind, tell))

    def loaded(self, loader, module):
        self.native.hwl_kernels_changed()
        if self.extensions is not None:
            self.extensions.take(module, loader.path)

    def guard_tensors(self):
        kind, addresses = torch.Tensor, ADDRESSES + tuple(name for name in dir(torch.Tensor) if "data_ptr" in name)
        self.guard_each(kind, addresses, kind, self.touching(True))
        self.guard_each(kind, COPIES, kind, self.touching(False))
        self.guard_each(kind, STORAGES, kind, lambda tensor: self.hand(address(tensor)))
        self.guard_each(kind, WRITES, kind, self.written, of_all)  # they read the other tensors in the same way
        if hasattr(kind, EXCHANGE):  # users of tensors ask __dlpack__ where it is not there
            self.patches.hide(kind, EXCHANGE)

    def guard_storages(self, kind):
        """Whatever a storage can do is an access, unless it is known to be harmless: newer frameworks can do more."""
        methods = [name for name in dir(kind) if callable(getattr(kind, name)) and not name.startswith(("__", "_new"))]
        addresses = [name for name in methods if name.startswith(STORAGE_ADDRESSES) and name not in HARMLESS]
        changes = [name for name in methods if name not in HARMLESS and name not in addresses]
        self.guard_each(kind, addresses, kind, lambda storage: self.touch_storage(address(storage)))
        self.guard_each(kind, (*changes, *STORAGE_WRITES), kind, lambda storage: self.change(address(storage)), of_all)

    def guard_functions(self):
        kind = torch.Tensor
        for holder in (torch, torch.utils.dlpack):
            self.guard_each(holder, ("to_dlpack",), kind, self.touching(True), of_all)
        self.guard_each(torch._C, FUNCTIONS, kind, self.touching(True), of_all)
        self.guard_each(torch, filter(READERS.match, dir(torch)), kind, self.touching(True), of_all)
        self.guard_each(torch, filter(WRITERS.match, dir(torch)), kind, self.written, of_all)
        interrupt = raising(self.native.hwl_interrupt)
        for kind, names in SAVES.items():
            holder = torch._C if kind is None else getattr(torch._C, kind)
            for name in names:
                if hasattr(holder, name):
                    self.patches.stand_for(holder, name, without(lambda: interrupt(b"what belongs to a module is saved")))

    def close(self):
        self.patches.undo()
        if self.extensions is not None:
            self.kernels.watch(False)
            self.extensions.restore()
            self.calls.restore()
            self.extensions = self.calls = None

    def written(self, tensor):
        self.write(address(tensor))

    def touching(self, stays):
        touch = self.touch
        return lambda tensor: touch(address(tensor), stays)


def watch_graphs(patches, native):
    """A CUDA graph's kernels read and write memory without any op: before it is captured or runs, the runtime is told."""
    interrupt = raising(native.hwl_interrupt)
    graph = getattr(getattr(torch, "cuda", None), "CUDAGraph", None)
    for name, what in (("capture_begin", b"a CUDA graph is captured"), ("replay", b"a CUDA graph runs")):
        if hasattr(graph, name):
            patches.stand_for(graph, name, without(functools.partial(interrupt, what)))


class RemoteCalls:
    """What torch.distributed.rpc sends is read by pointer, here or in the pickler of results."""

    def __init__(self, patches, touch, enter):
        self.patches, self.touch, self.enter = patches, touch, enter
        self.reducers = self.reducer = None
        self.actions = {"torch.distributed.rpc.api": self.patch_calls, "torch.distributed.rpc.internal": self.patch_pickler}

    def patch_calls(self, module):
        for name in dir(module):
            if name.startswith("_invoke_") and callable(getattr(module, name)):
                self.patches.stand_for(module, name, of_all(torch.Tensor, self.touch))

    def patch_pickler(self, module):
        if hasattr(module, "_run_function"):  # in threads of C++
            self.patches.stand_for(module, "_run_function", without(self.enter))
        reducers = getattr(getattr(module, "_internal_rpc_pickler", None), "_dispatch_table", None)
        if reducers is not None and torch.Tensor in reducers:
            self.reducers, self.reducer = reducers, reducers[torch.Tensor]
            reducers[torch.Tensor] = stand_for(self.reducer, of_first(torch.Tensor, self.touch))

    def restore(self):
        if self.reducers is not None:
            self.reducers[torch.Tensor] = self.reducer


class Regions:
    """What torch.compile has made with inductor: kernels that read and write memory by no op."""

    # Modules, in older versions or newer ones, with the class of what it makes of a graph.
    MODULES = ("torch._inductor.output_code", "torch._inductor.codecache", "torch._inductor.compile_fx")
    CLASSES = ("CompiledFxGraph", "CompiledAOTI")

    def __init__(self, patches, touch, region, entered, guards):
        self.patches, self.touch, self.region, self.entered = patches, touch, region, entered
        self.guards = guards
        self.actions = {name: self.patch for name in self.MODULES}

    def patch(self, module):
        for name in self.CLASSES:
            graph = getattr(module, name, None)
            if hasattr(graph, "__call__") and not self.patches.has(graph, "__call__"):
                self.patches.stand_for(graph, "__call__", self.enter, self.leave)

    def enter(self, graph, inputs, *__, **___):
        self.entered()
        kernels = self.guards.kernels
        if not self.guards.acting:
            return False
        if kernels.watching and getattr(graph, "cache_key", None) in kernels.shown and not kernels.others_see():
            return False
        for tensor in tensors_in(inputs):
            self.touch(address(tensor), True)
        self.region(b"torch.compile")
        return True

    def leave(self, entered, _):
        if entered:
            self.region(b"")


class Scripts:
    """What torch.jit has made: its interpreter reads a tensor's bytes for a list or a text, and on a GPU it fuses
    kernels."""

    READS = ("prim::tolist", "prim::Print", "aten::format", "aten::str")

    def __init__(self, patches, touch, region):
        self.touch, self.region = touch, region
        self.reads = weakref.WeakKeyDictionary()
        for name in ("ScriptFunction", "ScriptMethod"):
            kind = getattr(torch._C, name, None)
            if kind is not None:
                patches.stand_for(kind, "__call__", self.enter, self.leave)

    def past_the_dispatcher(self, script):
        try:
            known = self.reads.get(script)
            if known is None:
                graph = str(script.inlined_graph)
                known = self.reads[script] = any(name in graph for name in self.READS)
        except (AttributeError, RuntimeError, TypeError):
            return True
        return known or (torch.cuda.is_initialized() and torch._C._jit_texpr_fuser_enabled())

    def enter(self, script, *arguments, **named):
        entered = self.past_the_dispatcher(script)
        if entered:
            for tensor in tensors_in((arguments, named)):
                self.touch(address(tensor), False)
            self.region(b"TorchScript")
        return entered

    def leave(self, entered, _):
        if entered:
            self.region(b"")


_impl_offset = impl_offset()


def address(thing):
    """Of what a tensor or a storage is in C++. Nothing of the program's that hears of functions hears of it."""
    if _impl_offset is not None and issubclass(type(thing), torch.Tensor):
        return ctypes.c_void_p.from_address(id(thing) + _impl_offset).value
    with torch._C.DisableTorchFunction():
        return thing._cdata


def things_in(value, kind):
    if isinstance(value, kind):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from things_in(each, kind)
    elif isinstance(value, dict):
        yield from things_in(list(value.values()), kind)


def tensors_in(value):
    return things_in(value, torch.Tensor)


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
