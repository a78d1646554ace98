# SPDX-License-Identifier: MIT
"""Runs in the training process before its script does: waits for torch, then installs the shim.

Executed on the agent's own thread, so nothing here may import `threading`: it would take that
thread for the main one. `library` is the agent, loaded with ctypes and holding the GIL in calls.
"""
import ctypes
import sys
import types

wire = types.ModuleType("_highwater.wire")


def declare(library):
    """Argument types of the agent's functions; see agent/exports.cpp."""
    longs = ctypes.POINTER(ctypes.c_int64)
    structure = ctypes.c_void_p  # of wire.py
    for name, result, *arguments in (
            ("hw_shim_name", ctypes.c_char_p, ctypes.c_int),
            ("hw_shim_source", ctypes.c_char_p, ctypes.c_int),
            ("hw_config", None, structure),
            ("hw_native", ctypes.c_char_p),
            ("hw_programs", ctypes.c_char_p),
            ("hw_await_native", None, ctypes.c_int),
            ("hw_api", ctypes.c_void_p),
            ("hw_send", ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_int64),
            ("hw_send_wait", ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_int64),
            ("hw_send_contents", ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p,
             ctypes.c_int64),
            ("hw_broken", ctypes.c_int),
            ("hw_close", None),
            ("hw_watch_end", None),
            ("hw_leave_interpreter", None),
            ("hw_abandon", None),
            ("hw_fault", None, ctypes.c_char_p, ctypes.c_int64),
            ("hw_patch", ctypes.c_int),
            ("hw_limit", None),
            ("hw_refused", ctypes.c_int64),
            ("hw_cap", ctypes.c_int64),
            ("hw_heuristic", ctypes.c_int64),
            ("hw_unpatch", None),
            ("hw_redirect", ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint64,
             ctypes.c_uint64),
            ("hw_can_stand_for", ctypes.c_int),
            ("hw_stand_for", ctypes.py_object, ctypes.py_object, ctypes.py_object, ctypes.py_object),
            ("hw_silence", None, ctypes.py_object, ctypes.c_int),
            ("hw_pause", None, ctypes.c_int),
            ("hw_gpu_start", ctypes.c_int, ctypes.c_int),
            ("hw_gpu_begin", ctypes.c_int, ctypes.c_int),
            ("hw_gpu_end", None),
            ("hw_gpu_flush", None),
            ("hw_gpu_stop", None),
            ("hw_block", ctypes.c_int64, ctypes.c_uint64),
            ("hw_watch", ctypes.c_int, ctypes.c_uint64),
            ("hw_freed", ctypes.c_int64, longs),
            ("hw_now", ctypes.c_int64),
            ("hw_begin", None, structure),
            ("hw_end", None, structure),
            ("hw_window", None, structure)):
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


def run_file(index, module):
    name = library.hw_shim_name(index).decode().partition(".")[0]
    code = compile(library.hw_shim_source(index), "<highwater %s>" % name, "exec")
    frames = sys.modules.get("torch._C._dynamo.eval_frame")
    if frames is not None:
        hide(code, frames)
    exec(code, module.__dict__)


def hide(code, frames):
    """From torch's compiler: where it follows the program, our functions and what they call are none of it."""
    if hasattr(frames, "set_code_exec_strategy"):
        skip = frames._FrameAction.SKIP
        frames.set_code_exec_strategy(code, frames._FrameExecStrategy(skip, skip))
    elif hasattr(frames, "skip_code"):
        frames.skip_code(code)
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            hide(inner, frames)


def load_modules(package):
    """Executes the other files of the shim, in the order of their dependencies."""
    index = 1
    while True:
        name = library.hw_shim_name(index)
        if name is None:
            return
        short = name.decode().partition(".")[0]
        full = "_highwater." + short
        module = types.ModuleType(full)
        module.__package__ = "_highwater"
        sys.modules[full] = module
        setattr(package, short, module)
        run_file(index, module)
        index += 1


waiting = [True]  # emptied by the one that installs


def install(late=False):
    """Called once torch is imported. Whatever fails is reported, never raised.

    `late`: the program has gone on since then, and may be anywhere in a step.
    """
    try:
        waiting.pop()  # of several who saw the import end, one gets it
    except IndexError:
        return
    if finder in sys.meta_path:
        sys.meta_path.remove(finder)
    if bootstrap._load_unlocked is load_torch:
        bootstrap._load_unlocked = load
    try:
        known = sys.modules.get("_highwater")
        if known is not None and hasattr(known, "install"):
            if known.library._name == library._name:
                known.install.start()
                return
            known.install.stop()  # it came with another agent, which is not used any more
        package = types.ModuleType("_highwater")
        package.__path__ = []
        package.library = library
        package.blocking = declare(ctypes.CDLL(library._name))
        sys.modules["_highwater"] = package
        load_modules(package)
        package.install.start(late)
    except Exception as error:
        text = ("the shim could not be installed: %r" % error).encode()
        library.hw_fault(text, len(text))


class TorchFinder:
    """First on sys.meta_path: lets the others find torch and runs install() after its import."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        for other in list(sys.meta_path):
            find = getattr(other, "find_spec", None)
            if other is self or find is None:
                continue
            spec = find(name, path, target)
            if spec is not None:
                self.wrap(spec.loader)
                return spec
        return None

    def wrap(self, loader):
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return

        def exec_module(module):
            try:
                del loader.exec_module
            except AttributeError:
                pass
            execute(module)
            install()

        try:
            loader.exec_module = exec_module
        except AttributeError:
            pass


finder = TorchFinder()
bootstrap = sys.modules["_frozen_importlib"]
load = bootstrap._load_unlocked


def load_torch(spec):
    """In the place of the import machinery's own, where finders were asked for torch before ours was there."""
    module = load(spec)
    if spec.name == "torch":
        install()
    return module


def import_frames(function, argument):
    """What it was given, in every call of the import machinery's function that runs now, in any thread."""
    for frame in list(sys._current_frames().values()):
        while frame is not None:
            code = frame.f_code
            if code.co_name == function and code.co_filename == load.__code__.co_filename:
                yield frame.f_locals.get(argument)
            frame = frame.f_back


def watch_import(spec):
    """torch is being imported at this moment, too late for a finder.

    Its spec says so in `_initializing`, which the import machinery clears at the very end, on the
    importing thread and before the program goes on.
    """
    plain = type(spec)

    class WatchedSpec(plain):
        @property
        def _initializing(self):
            return self.__dict__.get("_initializing", False)

        @_initializing.setter
        def _initializing(self, value):
            self.__dict__["_initializing"] = value
            if not value:
                self.__class__ = plain
                if sys.modules.get("torch") is not None:
                    install()

    spec.__class__ = WatchedSpec
    if sys.modules.get("torch") is not None and not spec._initializing:  # it has ended in between
        install(late=True)
        spec.__class__ = plain


def main():
    """The import may begin, go on and end between any two of these lines.

    One that begins after the first line meets the finder. One that has begun before is in the frames or, once it
    has left them, in sys.modules; there torch is not yet while it is looked for.
    """
    sys.meta_path.insert(0, finder)
    if "torch" in import_frames("_find_and_load", "name"):
        bootstrap._load_unlocked = load_torch
    loaded = [spec for spec in import_frames("_load_unlocked", "spec") if getattr(spec, "name", None) == "torch"]
    torch = sys.modules.get("torch")
    spec = loaded[0] if loaded else getattr(torch, "__spec__", None)
    if loaded or getattr(spec, "_initializing", False):
        watch_import(spec)
    elif torch is not None:
        install(late=True)


declare(library)
if "atexit" in sys.modules:  # to import it may have to wait for the import of torch that is to be watched
    library.hw_watch_end()
run_file(1, wire)
library.hw_send(wire.TYPE_MILESTONE, wire.MILESTONE_SHIM.to_bytes(4, "little"), 4)
main()
