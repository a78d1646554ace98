# SPDX-License-Identifier: MIT
"""Where the ops of a traced step come from: the module that runs, and whether it is the backward pass."""
import _thread
import weakref

from _highwater import wire
from _highwater.module_calls import ModuleCalls
from _highwater.patches import Engine, Patches
from torch.autograd.variable import Variable

NOWHERE = -1


def paths_within(module):
    """Of a module and all within it, by id, as named_modules() tells them; but no attribute that the program has made its
    own hears of it."""
    paths, waiting = {}, [("", module)]
    while waiting:
        path, each = waiting.pop()
        if each is None or id(each) in paths:
            continue
        paths[id(each)] = path
        inner = object.__getattribute__(each, "__dict__").get("_modules") or {}
        waiting.extend((path + "." + name if path else name, part) for name, part in reversed(list(inner.items())))
    return paths


class Places:
    def __init__(self, native):
        self.native = native
        self.calls = ModuleCalls(self.enter, self.leave)
        self.thread = 0
        self.phase = wire.PHASE_FORWARD
        self.stack = []    # (module's id, layer) of those that run
        self.numbers = {}  # path -> layer
        self.roots = {}    # id -> (weak reference, prefix, {id: path}) of modules that no other one calls
        self.patches = Patches()

    def watch(self):
        """This thread begins a step that is traced."""
        self.rest()
        self.thread, self.phase = _thread.get_ident(), wire.PHASE_FORWARD
        self.stack = []
        self.calls.watch()
        self.patches.set(Variable, "_execution_engine",
                         Engine(Variable._execution_engine, self.enter_backward, self.leave_backward))
        self.tell()

    def rest(self):
        """Until the next step that is traced."""
        self.calls.rest()
        self.patches.undo()

    def unwatch(self):
        self.calls.unwatch()
        self.patches.undo()

    def tell(self):
        layer = self.stack[-1][1] if self.stack else NOWHERE
        if not self.native.hwl_place(layer, self.phase) and self.calls.watching:
            self.rest()  # the step turned out to be a known one

    def enter_backward(self, *_, **__):
        if _thread.get_ident() == self.thread:
            self.phase = wire.PHASE_BACKWARD
            self.tell()

    def leave_backward(self, *_):
        if _thread.get_ident() == self.thread:
            self.phase = wire.PHASE_OPTIMIZER  # and what comes before it
            self.tell()

    def enter(self, module):
        if _thread.get_ident() != self.thread:
            return
        if self.stack and self.stack[0][0] == id(module):
            del self.stack[:]  # an exception ended its last forward
        try:
            self.stack.append((id(module), self.layer_of(module)))
        except Exception:  # a module that does not say what it is made of
            self.stack.append((id(module), NOWHERE))
        if self.phase == wire.PHASE_OPTIMIZER:
            self.phase = wire.PHASE_FORWARD
        self.tell()

    def leave(self, module):
        """Pops up to the module: an exception in an inner forward may leave its entry behind."""
        if _thread.get_ident() != self.thread:
            return
        for depth in range(len(self.stack) - 1, -1, -1):
            if self.stack[depth][0] == id(module):
                del self.stack[depth:]
                break
        self.tell()

    def layer_of(self, module):
        around = self.stack[0][0] if self.stack else id(module)
        path = None
        for key in (around, *self.roots):  # a part of a known model may be called by itself
            weak, prefix, paths = self.roots.get(key, (None, "", {}))
            if weak is not None and weak() is not None and id(module) in paths:
                path = prefix + paths[id(module)]
                break
        if path is None:
            if self.stack:
                return self.stack[-1][1]  # a module of no known tree: part of its caller
            path = self.add_root(module)
        return self.number(path.rstrip(".") or "(root)")

    def add_root(self, module):
        prefix = ""
        self.roots = {key: root for key, root in self.roots.items() if root[0]() is not None}
        if self.roots:
            used = {prefix for _, prefix, _ in self.roots.values()}
            name, n = type(module).__name__, 1
            prefix = name + "."
            while prefix in used:
                n += 1
                prefix = "%s#%d." % (name, n)
        self.roots[id(module)] = weakref.ref(module), prefix, paths_within(module)
        return prefix

    def number(self, path):
        if path not in self.numbers:
            self.numbers[path] = self.native.hwl_layer(path.encode())
        return self.numbers[path]
