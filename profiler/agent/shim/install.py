# SPDX-License-Identifier: MIT
"""Puts the hooks into torch, and takes every one of them out again."""
import atexit
import ctypes
import os
import struct
import sys
import time

import torch
from _highwater import blocking, encode, gpu, higher_order, launching, library, live, wire
from _highwater.capture import Capture
from _highwater.forwards import Forwards
from _highwater.fused_kernels import FusedKernels, compiling
from _highwater.modules import Modules
from _highwater.patches import Engine, Patches
from _highwater.source_nodes import SourceNodes
from _highwater.steps import WAITING
from torch.autograd import profiler
from torch.autograd.variable import Variable

OPTIMIZER_SCOPES = ("Optimizer.step#", "Optimizer.zero_grad#")
NATIVE_MILLISECONDS = 600_000  # it may have to be built, for each of several processes
_current = None
_next = False  # a recording waits for the one before it to be gone
_watching_exit = False


class Hooks:
    def __init__(self, late):
        self.modules = Modules(self)
        self.forwards = Forwards(lambda: self.guard(self.capture.forward_by_op))
        self.capture = Capture(self.remove, self.modules, self.forwards, late)
        self.installed = False
        self.leaving = False
        self.stacks = []
        self.patches = Patches()

    def install(self):
        self.installed = True
        higher_order.pass_over(self.patches)
        self.capture.kernels = FusedKernels(self.patches, SourceNodes(
            self.patches, self.capture.enter_layer, self.capture.moved))
        if self.capture.steps.begins_soon():  # within what is compiled for its forward, maybe
            self.capture.kernels.watch(self.capture.sees_kernels())
        self.patches.set(Variable, "_execution_engine", Engine(
            Variable._execution_engine, lambda tensors, *arguments, **_: self.enter_backward(tensors, arguments),
            lambda handles, _: self.leave_backward(handles)))
        record = profiler.record_function
        enter_record, exit_record = record.__enter__, record.__exit__
        swap = getattr(torch.utils, "swap_tensors", None)
        hooks = self

        def enter(scope):
            if hooks.capture.mode is None:
                result = enter_record(scope)
            else:
                with hooks.capture.paused():
                    result = enter_record(scope)
            if scope.name.startswith(OPTIMIZER_SCOPES):
                hooks.guard(hooks.enter_scope)
            return result

        def leave(scope, *exception):
            if hooks.capture.mode is None:
                result = exit_record(scope, *exception)
            else:
                with hooks.capture.paused():
                    result = exit_record(scope, *exception)
            if scope.name.startswith(OPTIMIZER_SCOPES):
                hooks.guard(hooks.leave_scope, scope, exception)
                if scope.name.startswith("Optimizer.step#") and hooks.capture.trainer.is_other():
                    hooks.capture.step_elsewhere()
            return result

        def swap_tensors(one, other):
            if not hooks.installed or hooks.capture.failed:
                return swap(one, other)
            return hooks.capture.swap(swap, one, other)

        self.patches.set(record, "__enter__", enter)
        self.patches.set(record, "__exit__", leave)
        if swap is not None:
            self.patches.set(torch.utils, "swap_tensors", swap_tensors)
        self.modules.watch()
        if self.capture.steps.state == WAITING and self.capture.steps.warmup == 0:
            self.capture.await_forward()

    def remove(self, close=False):
        """With `close`, the connection ends too."""
        if not self.installed or self.leaving:
            return
        self.leaving = True
        blocking.hw_gpu_stop()  # others run meanwhile, for whom we are still here
        self.installed = False
        self.capture.trainer.let_go()
        self.patches.undo()
        self.modules.unwatch()
        self.forwards.unwatch()
        library.hw_unpatch()
        if _next:
            start()
        elif close:
            library.hw_close()

    def guard(self, function, *arguments):
        """Nothing of ours is ever raised into the program."""
        if self.installed and self.capture.failed:
            self.capture.retire()
        if not self.installed or not self.capture.concerns():
            return None
        with self.capture.trainer.turn:
            if not self.capture.concerns():
                return None
            try:
                return function(*arguments)
            except Exception as error:
                self.capture.give_up(error)
                return None

    def enter_backward(self, tensors, args):
        capture = self.capture
        if not self.installed or not capture.concerns() or compiling():
            return None
        with capture.trainer.turn:
            if not capture.concerns() or not capture.trainer.take():
                return None
            handles = []
            if capture.gradients.depth == 0:
                self.stacks = capture.layers.stack
                capture.layers.stack = []
                handles = self.guard(capture.before_backward, tensors, args[0] if args else ()) or []
            capture.gradients.depth += 1
            self.guard(capture.moved)
            return handles

    def leave_backward(self, handles):
        if handles is None:
            return
        capture = self.capture
        capture.gradients.depth -= 1
        for handle in handles:
            handle.remove()
        if capture.gradients.depth == 0:
            capture.layers.stack = self.stacks
            self.guard(capture.after_backward)
        self.guard(capture.moved)

    def enter_scope(self):
        if not self.capture.trainer.take():
            return
        if self.capture.by_hand.optimizer():
            self.capture.optimizer_depth = 0
        self.capture.optimizer_depth += 1
        self.capture.moved()

    def leave_scope(self, scope, exception):
        capture = self.capture
        if not capture.optimizer_depth:
            return
        capture.optimizer_depth -= 1
        capture.moved()
        if capture.optimizer_depth == 0 and scope.name.startswith("Optimizer.step#") and \
                not (exception and exception[0] is not None):
            del capture.layers.stack[:]  # what an exception in a forward may have left
            capture.trainer.stepped()
            capture.by_hand.stepped()
            capture.steps.optimizer_done((getattr(scope, "handle", None), getattr(scope, "record", None)))


def in_child():
    """A forked process goes on as if it had never been watched."""
    global _current
    hooks, _current = _current, None
    library.hw_abandon()
    if hooks is not None:
        hooks.capture.failed = True
        try:
            hooks.capture.leave()
            hooks.remove()
        except Exception:
            pass


def at_exit():
    blocking.hw_leave_interpreter()
    hooks = _current
    if hooks is not None and not hooks.capture.failed:
        try:
            hooks.guard(hooks.capture.program_ends)
            hooks.capture.leave()
            hooks.remove()
        except Exception:
            pass


def step_aside():
    """What it starts trains in its place, unless it has begun to train itself."""
    if live.trains() or (_current is not None and _current.installed and _current.capture.steps.milestones):
        return False
    live.leave()
    if _current is not None and _current.installed:
        _current.capture.give_up(encode.Broken())
    return True


def start(late=False):
    """Begins a recording, the first or a further one. `late`: a program that was to be recorded from its first
    step on may be in it by now."""
    global _current, _next, _watching_exit
    _next = _current is not None and _current.installed
    if _next:
        return
    launching.leave_environment()
    rank = launching.rank()
    launching.watch_spawn(step_aside)
    command = " ".join(getattr(sys, "orig_argv", sys.argv))
    encode.send(wire.TYPE_PROCESS, encode.text("pytorch") + encode.text(str(torch.__version__)) +
                encode.text(command) + struct.pack("<3q", time.time_ns(), rank, launching.world_size()) + encode.text(launching.run()))
    blocking.hw_await_native(NATIVE_MILLISECONDS)
    config = wire.CaptureConfig()
    library.hw_config(ctypes.byref(config))
    if config.flags & wire.CONFIG_LIVE:
        why = live.start(config.flags, rank)
        if why:
            encode.send(wire.TYPE_FAULT, encode.text(why))
        encode.send_milestone(wire.MILESTONE_TORCH)
        return
    hooks = Hooks(late)
    hooks.capture.count_blocks()
    gpu.start(hooks.capture.needs_gpu)
    hooks.install()
    _current = hooks
    if not _watching_exit:
        _watching_exit = True
        os.register_at_fork(after_in_child=in_child)
        atexit.register(at_exit)
    encode.send_milestone(wire.MILESTONE_TORCH)
    if late and not hooks.capture.attached:
        encode.send_gap("the first step", "the program was under way before it could be watched")


def stop():
    """The recorder has gone: the hooks follow, at the next chance that the training thread gives."""
    leaves = live.stop()
    hooks = _current
    if hooks is not None and hooks.installed:
        hooks.capture.give_up(encode.Broken())
    if not leaves and (hooks is None or not hooks.installed):
        library.hw_close()
