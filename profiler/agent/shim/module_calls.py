# SPDX-License-Identifier: MIT
"""Sees modules being called, by another Module.__call__. Torch's global hooks are not used: with them torch takes another
way to a module's forward, which tracebacks show, and compiles again whenever hooks have come or gone, up to its limit.
While compiled code runs, modules are not watched at all."""
import sys

import torch
from _highwater.patches import Imports, Patches, silence
from torch.nn.modules import module as framework

# A compiler that follows the program into what is called here is to find nothing: what it cannot follow may end the
# program (torch.compile's fullgraph). It takes this for a constant.
compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None) or (lambda: False)


def compiles():
    """Whether the program has called torch.compile."""
    frames = sys.modules.get("torch._dynamo.eval_frame")
    backends = getattr(frames, "cached_backends", {})
    return any(callable(backend) for backend in backends.values())


def without(watchers, one):
    return tuple(each for each in watchers if each is not one)


class ModuleCalls:
    def __init__(self, before, after=None, lose=lambda: None):
        """before(module) and after(module), whatever comes of the call. lose(): from now on they are not seen, as the
        program compiles."""
        self.before, self.after, self.lose = before, after, lose

    @property
    def watching(self):
        return self in _calls.watchers

    def watch(self, eagerly=False):
        """Until rest() or unwatch(), unless the program compiles; `eagerly`: what it has compiled does not run meanwhile.
        The end of a call that is under way is not seen."""
        if not self.watching and (eagerly or not compiles()):
            _calls.tell((*_calls.watchers, self), without(_calls.resting, self))

    def rest(self):
        """No call is told of until the next watch(). It may come with every step, as Module.__call__ stays the same:
        another one makes Python forget what it knew of hundreds of classes."""
        if self.watching:
            _calls.tell(without(_calls.watchers, self), (*_calls.resting, self))

    def unwatch(self):
        if self.watching or self in _calls.resting:
            _calls.tell(without(_calls.watchers, self), without(_calls.resting, self))


class Calls:
    """The one Module.__call__ that stands for torch's, and whom it tells."""

    def __init__(self):
        self.watchers = ()
        self.resting = ()  # those that may watch again
        self.ours = None
        self.patches = Patches()

    def tell(self, watchers, resting):
        self.watchers, self.resting = watchers, resting
        if self.ours is not None:
            can_rest = silence(self.ours, not watchers)
            if not watchers and not (resting and can_rest):
                self.patches.undo()
                self.ours = None
        elif watchers:
            self.stand()

    def stand(self):
        def before(module, *_, **__):
            if self.ours is not ours:  # the program has kept this one, and put it back
                return None
            watchers = self.watchers
            for watcher in watchers:
                watcher.before(module)
            return module, watchers

        def after(told, _):
            module, watchers = told or (None, ())
            for watcher in watchers:
                if watcher.after is not None:
                    watcher.after(module)

        theirs = framework.Module.__call__
        self.patches.stand_for(framework.Module, "__call__", before, after)
        self.ours = ours = framework.Module.__call__

        def correct(utils):
            """The compiler keeps the one that it finds, and takes any other for the program's."""
            if getattr(utils, "unpatched_nn_module_call", None) is ours:
                utils.unpatched_nn_module_call = theirs

        Imports(self.patches, {"torch._dynamo.eval_frame": self.watch_compiler, "torch._dynamo.utils": correct})

    def watch_compiler(self, frames):
        self.patches.stand_for(frames.OptimizeContext, "__init__", self.will_compile)

    def will_compile(self, *_, **__):
        watchers = self.watchers
        self.tell((), ())
        for watcher in watchers:
            watcher.lose()


_calls = Calls()
