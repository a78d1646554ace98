# SPDX-License-Identifier: MIT
"""Kernels that torch.compile has made, as ops: each comes by the dispatcher, as the framework's own do.

Inductor writes a Python module for each graph. Its call() allocates buffers and calls kernels by their names in the
module; those that it has fused are functions, which read and write buffers by their addresses. Here call() runs other
code for a while, made from its own: a fused kernel becomes an op, whose only kernel is the fused one, and which makes
the buffers that are allocated for it to fill (compiled_code.py). What runs is what the compiler has made, in its order,
on the same values."""
import hashlib
import os
import re
import threading
from types import FunctionType

import torch
from _highwater import encode, library
from _highwater.compiled_code import AT, EMPTY, OWN, PRODUCT, SEEN, rewritten
from _highwater.module_calls import compiles
from _highwater.native import open_native
from _highwater.patches import Imports

WITHOUT_AUTOCAST = getattr(torch._C, "_DisableAutocast", None)
NAMESPACE = "inductor_fused"  # ops of the compiler's: the same bits for the same arguments (native/operators.cpp)
SCHEMA = "(Tensor[] read, Tensor(a!)[] written, Scalar[] numbers, int[] layouts) -> Tensor[]"
FILE = os.path.join(os.path.dirname(torch.__file__), "_inductor", "output_code")  # in the framework: no line of the program's
FUSED = re.compile(r"^(\w+) = async_compile\.cpp_pybinding\(\[(.*?)\], r?'''(.*?)'''\)", re.MULTILINE | re.DOTALL)
WRAPPERS = "torch._functorch._aot_autograd.runtime_wrappers"
MADE = re.compile(r"^(\w+) = async_compile\.", re.MULTILINE)


def kind(of_argument):
    """By its type in C++: what a pointer to constants leads to is read, to others read and written."""
    if not of_argument.endswith("*"):
        return "number"
    return "read" if of_argument.startswith("const ") else "written"


def empty(size, stride, dtype):
    return torch.empty_strided(size, stride, dtype=dtype)


def product(function, *arguments, **named):
    """With `out`, as the compiler calls it, autocast has no part in it."""
    with WITHOUT_AUTOCAST():
        return function(*arguments, **named)


def allocate(layouts, types):
    """`layouts`: of each its dimensions, sizes and strides."""
    made, at = [], 0
    for each in types:
        first, last = at + 1, at + 1 + layouts[at]
        at = last + layouts[at]
        made.append(torch.empty_strided(layouts[first:last], layouts[last:at], dtype=each))
    return made


def modes_of_program():
    """Dispatch modes and function modes, but for those in which the framework checks ops or knows a default device."""
    if not torch._C._len_torch_dispatch_stack() and not torch._C._len_torch_function_stack():
        return False
    modes = [torch._C._get_dispatch_stack_at(i) for i in range(torch._C._len_torch_dispatch_stack())]
    modes += [torch._C._get_function_stack_at(i) for i in range(torch._C._len_torch_function_stack())]
    return not all(type(mode).__module__.startswith(("torch._functorch.", "torch.utils._device")) for mode in modes)


_ops = {}       # by their names, and the library that they are of; they stay, as what is defined twice is an error
_thread = None  # that compiles


def compiling():
    """What this thread does is the compiler's: it runs ops, backward passes too, that are no part of the training."""
    return _thread == threading.get_ident()


def tell_compiling(native, begins):
    global _thread
    _thread = threading.get_ident() if begins else None
    native.hwn_compiling(begins)


def may_compile_again():
    """Whether the compiler would raise nothing and go on, for each function, with all that it has made for it."""
    try:
        config, frames = torch._dynamo.config, torch._dynamo.eval_frame
        stance = getattr(getattr(frames, "_stance", None), "stance", "default")  # what the program has set
        entries = frames._debug_get_cache_entry_list
        limit = config.recompile_limit if hasattr(config, "recompile_limit") else config.cache_size_limit
        codes = [weak() for weak in torch._dynamo.convert_frame.input_codes.seen]
        return stance == "default" and not config.error_on_recompile and all(
            2 * len(entries(code)) <= limit for code in codes if code)
    except Exception:  # of a form that is not known
        return False


class FusedKernels:
    """`hidden`: the program has compiled code whose kernels are not ops."""

    def __init__(self, patches, places=None):
        self.places = places
        self.shown = set()   # keys of modules all of whose kernels are ops
        self.codes = []      # function, its own code, the other
        self.watching = False
        self.hidden = False
        self.told = False    # that some go unseen, in modes of the program's
        self.seen = {}       # modules, by their ids
        self.cache = None
        self.late = compiles()  # what was compiled before has to be compiled again
        Imports(patches, {"torch._inductor.codecache": lambda module: self.cache_came(patches, module),
                          "torch._dynamo.callback": lambda module: self.compiler_tells(patches, module),
                          WRAPPERS: lambda module: self.wrappers_came(patches, module),
                          "torch._dynamo.eval_frame": lambda module: patches.stand_for(
                              module.OptimizeContext, "__init__", self.will_compile)})

    def visible(self):
        """Whether all that the program has compiled can come by as ops."""
        return not self.hidden and not self.late and bool(library.hw_native())

    def begin(self):
        """Ops of this thread come by from now on. What it has compiled without us is compiled once more, if it can be."""
        if self.late and library.hw_native() and may_compile_again():
            self.late = False
            self.will_compile()

    def will_compile(self, *_, **__):
        """The compiler's guards see whether ops come by: from now on they always do."""
        if not self.visible():
            return
        native = open_native()
        if native is None:  # load_native() says why
            self.hidden = True
        else:
            native.hwn_stay()

    def compiler_tells(self, patches, module):
        """What it does meanwhile is no part of a step. Before torch 2.4 it does not tell."""
        native = open_native()
        handler = getattr(module, "CompilationCallbackHandler", None)
        if native is not None and handler is not None:
            patches.stand_for(handler, "run_start_callbacks", lambda *_: tell_compiling(native, True))
            patches.stand_for(handler, "run_end_callbacks", lambda *_: tell_compiling(native, False))

    def wrappers_came(self, patches, module):
        native, mode = open_native(), getattr(module, "_AnalyzeCustomOpInputOutputMode", None)
        if native is not None and mode is not None:
            patches.stand_for(mode, "__enter__", before=lambda *_: native.hwn_check(1))
            patches.stand_for(mode, "__exit__", after=lambda *_: native.hwn_check(0))

    def watch(self, watching):
        """Whether kernels come by as ops."""
        self.watching = watching
        for function, own, other in self.codes:
            function.__code__ = other if watching else own

    def cache_came(self, patches, codecache):
        self.cache = getattr(codecache, "PyCodeCache", None)
        if hasattr(self.cache, "load_by_key_path"):
            patches.stand_for(self.cache, "load_by_key_path", after=lambda *_: self.take_all())
            self.take_all()

    def take_all(self):
        modules = getattr(self.cache, "modules", None)
        if modules is None:
            modules = self.cache.cache.values()  # before torch 2.5
        for module in list(modules):
            if id(module) not in self.seen and "call" in module.__dict__:
                self.seen[id(module)] = module
                if self.takes(module):
                    self.shown.add(getattr(module, "key", None))
                else:
                    self.hide()

    def takes(self, module):
        try:
            return self.take(module)
        except Exception:  # of a form that is not known: the program runs as the compiler has it
            return False

    def others_see(self):
        """A mode of the program's would see the kernels as ops, which alone it does not."""
        if not modes_of_program():
            return False
        if not self.told and self.places is not None:
            encode.send_gap("kernels of torch.compile", "the program is in a mode of its own, which would see them as ops: there "
                            "they go unseen")
        self.told = True
        return True

    def hide(self):
        if not self.hidden and self.places is not None:
            encode.send_gap("kernels of torch.compile", "some are not of a known form; until the next recorded step they go unseen")
        self.hidden = True

    def take(self, module):
        with open(module.__file__, encoding="utf-8") as file:
            text = file.read()
        kernels = {name: (module.__dict__[name], [kind(each) for each in re.findall(r"'([^']*)'", types)], source)
                   for name, types, source in FUSED.findall(text)}
        if len(kernels) < len(set(MADE.findall(text))) or WITHOUT_AUTOCAST is None:
            return False
        kinds = {name: kinds for name, (_, kinds, _) in kernels.items()}

        module.__dict__.update({EMPTY: empty, PRODUCT: product, SEEN: self.others_see})

        def name_of(call_of):
            kernel, _, source = kernels[call_of.kernel]
            op, name = self.op_of(call_of, kernel, source)
            module.__dict__["_highwater_" + name] = op
            return "_highwater_" + name

        if self.places is not None:
            module.__dict__[AT] = self.places.call
            self.places.begin()
        codes = rewritten(text, kinds, name_of, module.__dict__, FILE, self.places and self.places.number)
        if codes is None:
            return False
        functions = {name: getattr(getattr(module, name), "__func__", getattr(module, name)) for name in codes}
        for name, function in functions.items():
            module.__dict__[OWN + name] = FunctionType(function.__code__, function.__globals__, name, function.__defaults__,
                                                       function.__closure__)
            self.codes.append((function, function.__code__, codes[name]))
            if self.watching:
                function.__code__ = codes[name]
        return True

    def op_of(self, call, kernel, source):
        """One for each source, and for what of its arguments it makes: as it is called in any process."""
        if not _ops:
            _ops[NAMESPACE] = torch.library.Library(NAMESPACE, "FRAGMENT")
        kinds, types = call.kinds, call.types
        unique = ",".join([*kinds, *map(str, types), source])
        overload = "of_" + hashlib.sha256(unique.encode()).hexdigest()[:12]
        full = call.kernel + "." + overload
        if full not in _ops:
            def run(read, written, numbers, layouts):
                made = allocate(layouts, types)
                parts = {"read": iter(read), "written": iter(written), "number": iter(numbers), "made": iter(made)}
                kernel(*[next(parts[each]) for each in kinds])
                return made

            _ops[NAMESPACE].define(full + SCHEMA)
            for device in ("CPU", "CUDA", "CompositeExplicitAutograd"):  # the last where no tensor is given
                _ops[NAMESPACE].impl(full, run, device)
            _ops[full] = getattr(getattr(getattr(torch.ops, NAMESPACE), call.kernel), overload)
        return _ops[full], full.replace(".", "_")
