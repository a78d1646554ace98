# SPDX-License-Identifier: MIT
"""Callables that stand for others, the engine among them, and attributes that are others for a while."""
import ctypes
import functools
import gc
import importlib.machinery
import sys

from _highwater import library


def stand_for(original, before=None, after=None):
    """Does what `original` does, and is in all else as it is: no frame of Python's tells of it. `before(*arguments)`
    comes first, and what it raises is raised instead; after(what it has given, whether the original has returned)
    comes last."""
    if IN_C:
        return library.hw_stand_for(original, before, after)

    @functools.wraps(original)
    def standing(*arguments, **named):
        token = None if before is None else before(*arguments, **named)
        done = False
        try:
            result = original(*arguments, **named)
            done = True
        finally:
            if after is not None:
                after(token, done)
        return result

    return standing


def silence(standing, silent):
    """Calls of what stand_for() has made go straight to the original, or no longer. False: this one cannot."""
    if IN_C:
        library.hw_silence(standing, silent)
    return IN_C


IN_C = sys.implementation.name == "cpython" and object.__basicsize__ == 16 and library.hw_can_stand_for()


def owner_of(holder, name):
    """The class that a class has a method from. Not of what Python calls by itself: it looks that up in the class."""
    if isinstance(holder, type) and not name.startswith("__"):
        return next((kind for kind in holder.__mro__ if name in kind.__dict__), holder)
    return holder


def assign(holder, name, value):
    try:
        setattr(holder, name, value)
    except TypeError:  # a class in C
        names = gc.get_referents(holder.__dict__)[0]
        if type(names) is not dict:
            raise
        names[name] = value
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(holder))


class Patches:
    """Attributes that are others for a while."""

    def __init__(self):
        self.made = []

    def set(self, holder, name, value):
        self.made.append((holder, name, holder.__dict__.get(name), value))
        assign(holder, name, value)

    def stand_for(self, holder, name, before=None, after=None):
        """A function that several modules have stays one thing."""
        original = getattr(holder, name)
        known = (value for within, _, stood_for, value in self.made if stood_for is original and not isinstance(within, type))
        self.set(holder, name, next(known, None) or stand_for(original, before, after))

    def hide(self, holder, name):
        """One that is not there for a while, of the holder itself."""
        if name in holder.__dict__:
            self.made.append((holder, name, holder.__dict__[name], None))
            delattr(holder, name)

    def has(self, holder, name):
        return any(each[0] is holder and each[1] == name for each in self.made)

    def undo(self):
        for holder, name, before, value in reversed(self.made):
            if holder.__dict__.get(name) is value:
                if before is None:
                    delattr(holder, name)
                else:
                    assign(holder, name, before)
        self.made = []


class Engine:
    """Stands for the autograd engine; everything but run_backward goes straight through."""

    def __init__(self, engine, before, after):
        self._engine = engine
        self.run_backward = stand_for(engine.run_backward, before, after)

    def __getattr__(self, name):
        return getattr(self._engine, name)


def after_import(patches, kind, loaded):
    """loaded(loader, module) is called when a loader of that kind has loaded one."""
    def after(call, done):
        if done:
            loaded(*call)

    patches.stand_for(kind, "exec_module", lambda loader, module: (loader, module), after)


class Imports:
    """Modules of the framework that are patched once they are imported."""

    def __init__(self, patches, actions):
        for name, action in actions.items():
            if name in sys.modules:
                action(sys.modules[name])

        def loaded(_, module):
            if module.__name__ in actions:
                actions[module.__name__](module)

        after_import(patches, importlib.machinery.SourceFileLoader, loaded)
