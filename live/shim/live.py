# SPDX-License-Identifier: MIT
"""A plan acts in the program (live/runtime): where its steps begin and end, and what each of them came to."""
import _thread
import atexit
import ctypes
import os
import struct
import threading

import torch
from _highwater import access_guards, blocking, encode, gpu, higher_order, library, tensors, wire
from _highwater.access_guards import without
from _highwater.by_hand import ByHand
from _highwater.compiled_regions import CompiledRegions
from _highwater.forwards import Forwards
from _highwater.fused_kernels import compiling
from _highwater.module_calls import ModuleCalls
from _highwater.patches import Engine, Patches, stand_for
from _highwater.places import Places
from _highwater.program_files import awaiting, kept_ops, programs
from _highwater.running_threads import RunningThreads
from _highwater.shortage import Rescues, adopt_tensors
from _highwater.stacks import FRAMEWORK, FrameLayout, frame_layout
from torch.autograd import profiler
from torch.autograd.variable import Variable

MODES = {wire.BOUNDARY_PLANNED: wire.LIVE_MODE_PLAN, wire.BOUNDARY_BUDGET: wire.LIVE_MODE_DTR,
         wire.BOUNDARY_BY_SIZE: wire.LIVE_MODE_MIMOSE}
LIBRARY = os.path.join(os.path.dirname(os.__file__), "")
CURVE_NANOSECONDS = 500_000_000  # between two curves at least


def load():
    """The runtime, ready; or why there is none."""
    path = library.hw_native()
    if not path:
        return None, "the runtime could not be compiled for this framework"
    # Without Python's lock: while the runtime brings bytes back, an op may need it.
    native = ctypes.CDLL(path.decode("utf-8", "surrogateescape"))
    for name, result, *arguments in (
            ("open", ctypes.c_char_p, ctypes.c_void_p),
            ("add", ctypes.c_char_p, ctypes.c_char_p),
            ("keep_within", None, ctypes.c_int64, ctypes.c_int, ctypes.c_int),
            ("adopt", None, ctypes.c_int64),
            ("rescue", ctypes.c_char_p, ctypes.POINTER(wire.LiveRescue)),
            ("hand_over", ctypes.c_char_p, ctypes.c_char_p),
            ("layer", ctypes.c_int64, ctypes.c_char_p),
            ("place", ctypes.c_int, ctypes.c_int64, ctypes.c_int),
            ("enter", None),
            ("enter_beside", None),
            ("forked", ctypes.c_int),
            ("trace", None),
            ("curve", ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64)),
            ("leave", None),
            ("begin", ctypes.c_int),
            ("forward", None),
            ("end", None),
            ("step", ctypes.c_int, ctypes.POINTER(wire.LiveFigures)),
            ("touch", ctypes.c_char_p, ctypes.c_int64, ctypes.c_int),
            ("hand", ctypes.c_char_p, ctypes.c_int64),
            ("touch_storage", ctypes.c_char_p, ctypes.c_int64),
            ("change", ctypes.c_char_p, ctypes.c_int64),
            ("change_tensor", ctypes.c_char_p, ctypes.c_int64),
            ("region", None, ctypes.c_char_p),
            ("lines", None, ctypes.POINTER(FrameLayout), ctypes.c_char_p),
            ("verify", None, ctypes.c_int, ctypes.c_char_p, ctypes.c_int),
            ("wrap_caster", ctypes.c_uint64, ctypes.c_uint64),
            ("wrap_result", ctypes.c_uint64, ctypes.c_int, ctypes.c_uint64),
            ("wrap_function", ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int),
            ("count_cuda", ctypes.c_char_p),
            ("limit_cuda", ctypes.c_int),
            ("interrupt", ctypes.c_char_p, ctypes.c_char_p),
            ("divergence", ctypes.c_char_p),
            ("remark", ctypes.c_char_p, ctypes.c_int64),
            ("fault", ctypes.c_char_p),
            ("shortage", ctypes.c_char_p)):
        function = getattr(native, "hwl_" + name)
        function.restype = result
        function.argtypes = arguments
    why = native.hwl_open(library.hw_api())
    return (None, why.decode()) if why else (native, "")


class Step:
    """What a step has come to, as long as the next one has not shown that it was a whole one."""

    def __init__(self, begin):
        self.begin, self.end, self.peak = begin, begin, 0
        self.mode = None
        self.recomputed = self.restored = self.pinned = self.ops = self.runtime = 0
        self.recomputing = self.evictions = self.verified = self.verifying = self.uncompared = 0
        self.offloaded = self.waited = 0
        self.rescues = Rescues()
        self.divergence = self.curve = None

    def add(self, figures):
        """Those of a part of the step that an optimizer has ended."""
        self.recomputed += figures.recomputed_ops
        self.restored += figures.restored_bytes
        self.pinned = max(self.pinned, figures.pinned_bytes)
        self.ops += figures.ops
        self.runtime += figures.runtime_ns
        self.recomputing += figures.recomputed_ns
        self.evictions += figures.evictions
        self.verified += figures.verified_bytes
        self.verifying += figures.verification_ns
        self.uncompared += figures.uncompared_ops
        self.offloaded += figures.offloaded_bytes
        self.waited += figures.waited_ns


class Backwards:
    """Tells `live` where an outermost backward pass of the thread that trains begins and has ended."""

    def __init__(self, live):
        self.live = live
        self.depth = 0

    def enter(self, *_, **__):
        """How deep the one around it is; None of another thread."""
        if compiling() or not self.live.is_trainer():
            return None
        around = self.depth
        self.depth = around + 1
        if around == 0:
            self.live.guard(self.live.before_backward)
        return around

    def leave(self, around, done):
        if around is None or not self.live.is_trainer():
            return
        self.depth = around
        if around == 0 and done:
            self.live.guard(self.live.passed_backward)


def is_theirs(error):
    """Whether a handler of the program's has raised it, of a signal that came while we were at work."""
    files, trace = [], error.__traceback__
    while trace is not None:
        files.append(trace.tb_frame.f_code.co_filename)
        trace = trace.tb_next
    return any(not file.startswith(("<highwater ", "<string>", FRAMEWORK, LIBRARY)) for file in files)


class Live:
    def __init__(self, native, running, budget, hands_over, partition):
        self.native = native
        self.running = running    # the program was under way already
        self.partition = partition    # what torch.compile keeps is a planner's choice
        self.hands_over = hands_over  # begin of the names of files: a step for a planner, and its plan
        self.budget = budget      # DTR acts, from the first op on or from the first whole step, whether planned or not
        self.trainer = 0          # the thread that trains
        self.depth = 0            # of optimizers' steps
        self.number = 0
        self.window = wire.MemoryWindow()
        self.figures = wire.LiveFigures()
        self.unseen_bytes = 0     # of storages that were there before their allocator was counted
        self.pending = None       # ended, unless another optimizer follows
        self.begun = 0
        self.milestones = set()   # told of
        self.remarks = 0          # of the runtime, told of
        self.active = False       # a forward with gradients has begun since the last step's end
        self.nodes = 0            # of autograd that this thread had made at that end
        self.forwards = Forwards(self.forward_by_op)
        self.by_modules = False   # a forward with gradients has begun with one
        self.by_op = False        # the first step has begun with an op, and no module has been called since
        self.backwards = Backwards(self)
        self.calls = ModuleCalls(self.before_module, lose=self.lose_modules)
        self.patches = Patches()
        self.guards = access_guards.AccessGuards(native, self.region_entered)
        self.regions = None       # of torch.compile, within a budget that planners keep
        self.threads = Patches()
        self.running_threads = RunningThreads(native.hwl_enter_beside)
        self.places = Places(native)
        self.by_hand = ByHand()
        self.leaving = False      # at the end of this step
        self.awaits = None        # called before the first step: more plans may be on their way
        self.told = True          # figures of the runtime are among those of a step that has ended
        self.next_curve = None    # not before that time; None: they are not wanted

    # In and out.

    def install(self):
        record = profiler.record_function
        higher_order.pass_over(self.patches)
        self.watch_threads()
        if self.hands_over and self.partition:
            self.regions = CompiledRegions(self.patches, self.hands_over, tensors.find_optimizers, self.remark)
        self.guards.open(self.running)
        access_guards.watch_graphs(self.patches, self.native)
        self.patches.set(Variable, "_execution_engine",
                         Engine(Variable._execution_engine, self.backwards.enter, self.backwards.leave))
        # Last: the thread that trains may run meanwhile, and with an optimizer's step a plan begins to act.
        self.patches.stand_for(record, "__enter__", lambda scope: scope, self.scope_begun)
        self.patches.stand_for(record, "__exit__", lambda scope, *_: scope, self.scope_ended)
        if self.budget and not self.running:
            self.enter()
        if not self.running:  # else the first step begins where an optimizer has made the one under way
            self.await_forward()

    def watch_threads(self):
        """They see what this one drops: each enters as it begins, those that run already as soon as they can."""
        enter = self.native.hwl_enter_beside
        self.threads.stand_for(threading.Thread, "_bootstrap_inner", without(enter))
        start_thread = _thread.start_new_thread

        def start_new_thread(function, *arguments):
            entering = stand_for(function, without(enter)) if callable(function) else function
            return start_thread(entering, *arguments)

        for name in ("start_new_thread", "start_new"):  # without a Thread
            self.threads.set(_thread, name, start_new_thread)
        self.running_threads.tell()

    def scope_begun(self, scope, done):
        if done and scope.name.startswith("Optimizer.step#") and self.is_trainer():
            self.depth += 1

    def scope_ended(self, scope, done):
        if not done or not scope.name.startswith("Optimizer.step#") or not self.is_trainer() or not self.depth:
            return
        self.depth -= 1
        if self.depth == 0:
            self.saw(wire.MILESTONE_OPTIMIZER)
            self.by_hand.optimizer()
            self.by_hand.stepped()
            self.guard(self.stepped)

    def remove(self):
        """Everything is there again, and nothing of ours is left but the way."""
        self.forwards.unwatch()
        if self.trainer:
            self.native.hwl_leave()
        self.unhook()
        self.threads.undo()
        self.guards.close()
        forget(self)
        gpu.unlimit()
        library.hw_unpatch()
        library.hw_close()

    def unhook(self):
        """Steps are not seen any more."""
        self.calls.unwatch()
        self.places.unwatch()
        self.patches.undo()

    def forked(self):
        """In a child, whose steps belong to no plan. It takes no lock that another thread may have had."""
        self.unhook()
        if not self.native.hwl_forked():
            self.threads.undo()
            self.guards.close()

    # Steps.

    def is_trainer(self):
        return self.trainer in (0, _thread.get_ident())

    def await_forward(self):
        self.calls.watch()
        self.by_modules = self.by_modules and self.calls.watching
        if not self.by_modules:
            self.forwards.watch()

    def lose_modules(self):
        self.by_modules = False
        if not self.active:
            self.forwards.watch()

    def before_module(self, module):
        """Within a backward pass a checkpoint runs its forward again; a loss comes after the forward."""
        if torch.is_grad_enabled() and not self.backwards.depth and not issubclass(
                type(module), torch.nn.modules.loss._Loss):
            self.guard(self.forward_by_module)

    def forward_by_module(self):
        if not self.by_modules and self.is_trainer():
            self.by_modules = True
            self.forwards.unwatch()
            if self.by_op:  # what the step has begun with was no forward: weights were made
                self.native.hwl_interrupt(b"a module is called")
                self.begin()
                self.native.hwl_forward()
        self.by_op = False
        self.forward()

    def forward_by_op(self):
        """False: it is none, but of a backward pass."""
        if self.backwards.depth:
            return False
        if not self.by_modules and self.is_trainer():
            self.by_op = not self.budget and not self.trainer
            self.guard(self.forward)
        return True

    def before_backward(self):
        self.by_op = False
        self.saw(wire.MILESTONE_BACKWARD)
        unseen = self.forwards.nodes() != self.nodes if self.trainer else not self.running
        if unseen and not self.active:
            self.forward()

    def guard(self, function):
        """Nothing of ours is raised into the program; without a recorder the plan ends with this step."""
        try:
            function()
        except encode.Broken:
            self.leaving = True
        except Exception as error:
            self.leaving = True
            if is_theirs(error):
                raise
            try:
                text = "the shim failed: %r" % error
                encode.send(wire.TYPE_FAULT, encode.text(text))
            except Exception:
                pass

    def saw(self, milestone):
        if milestone not in self.milestones:
            self.milestones.add(milestone)
            encode.send_milestone(milestone)

    def passed_backward(self):
        self.by_hand.backward()
        if self.by_hand.may_end():
            self.await_forward()

    def forward(self):
        self.saw(wire.MILESTONE_FORWARD)
        if self.active and self.is_trainer() and self.by_hand.ends():
            self.by_hand.ended()
            self.stepped()
        if self.active:
            return
        if not self.is_trainer():
            if not self.budget or self.number or self.pending is not None:
                return
            self.trainer = 0  # another thread trains than the one that began
        self.active = True
        if not self.trainer:
            self.enter()
        self.native.hwl_forward()
        if self.pending is not None:
            self.send(self.pending)
            self.pending = None
        if self.by_modules:
            self.calls.rest()

    def enter(self):
        """This thread trains, and a step begins."""
        self.trainer = _thread.get_ident()
        if self.awaits is not None:
            self.awaits, awaits = None, self.awaits
            awaits()
        library.hw_window(ctypes.byref(self.window))
        self.begun = library.hw_now()
        if self.running and self.budget:
            adopt_tensors(self.native.hwl_adopt)
            library.hw_limit()
        self.guards.begin()
        self.native.hwl_enter()
        self.begin()

    def begin(self):
        traced = self.native.hwl_begin()
        self.told = False
        if traced:
            self.places.watch()

    def stepped(self):
        """An optimizer has made its step."""
        if not self.trainer:
            if self.leaving:
                self.remove()
            elif self.running:
                self.enter()
                self.await_forward()
            return
        boundary = self.native.hwl_step(self.figures)
        if boundary == wire.BOUNDARY_MIDDLE:
            return
        self.places.rest()
        figures = self.figures
        step = self.pending or Step(figures.begun_ns or self.begun)
        step.end = self.begun = figures.now_ns
        if self.running and boundary == wire.BOUNDARY_PLANNED:
            self.unseen_bytes = figures.uncounted_bytes
        step.peak = max(step.peak, figures.peak + self.unseen_bytes)
        mode = MODES.get(boundary, wire.LIVE_MODE_NONE)
        mixed = wire.LIVE_MODE_DTR if self.budget else wire.LIVE_MODE_NONE
        step.mode = mode if step.mode in (None, mode) else mixed
        step.add(figures)
        if figures.rescued:
            step.rescues.add(self.native)
        self.told = True
        if figures.diverged_at > 0 and step.divergence is None:
            expected, _, found = self.native.hwl_divergence().decode("utf-8", "replace").partition("\n")
            step.divergence = figures.diverged_at, expected, found
        self.note_curve(step)
        self.pending = step
        self.active = False
        self.nodes = self.forwards.nodes()
        if self.leaving:
            try:
                self.finish()
            finally:
                self.remove()
            return
        self.await_forward()
        if self.hands_over:
            self.note(wire.LIVE_NOTE_KIND_REMARK, self.native.hwl_hand_over(self.hands_over))
        self.send_remarks()
        if self.regions is not None:
            self.regions.step_ended(step.peak)
        self.begin()

    def note_curve(self, step):
        if step is self.pending:
            step.curve = None  # the plan's ops are those of a part of it
        elif self.next_curve is None or step.mode != wire.LIVE_MODE_PLAN or step.end < self.next_curve:
            step.curve = None
        else:
            count = ctypes.c_int64()
            address = self.native.hwl_curve(ctypes.byref(count))
            step.curve = struct.pack("<qI", self.unseen_bytes, count.value) + ctypes.string_at(address, 8 * count.value)
            self.next_curve = step.end + CURVE_NANOSECONDS

    def send(self, step):
        if step.divergence is not None:
            op, expected, found = step.divergence
            encode.send(wire.TYPE_LIVE_DIVERGENCE, struct.pack("<2q", self.number, op) +
                        encode.text(expected) + encode.text(found))
        step.rescues.send(self.number)
        if step.curve is not None:
            encode.send(wire.TYPE_LIVE_CURVE, struct.pack("<q", self.number) + step.curve)
        encode.send(wire.TYPE_LIVE_STEP, struct.pack(
            "<16qB", self.number, step.begin, step.end, step.peak, step.recomputed, step.restored,
            step.pinned, step.ops, step.runtime, step.recomputing, step.evictions, step.verified,
            step.verifying, step.uncompared, step.offloaded, step.waited, step.mode))
        self.number += 1

    def finish(self):
        """The program ends. A step that ends with it is one, too."""
        if self.active and self.trainer == _thread.get_ident() and not self.backwards.depth and \
                self.by_hand.remains(self.number or self.pending is not None):
            self.by_hand.ended()
            self.native.hwl_end()
            self.stepped()
        if self.pending is not None:
            self.send(self.pending)
            self.pending = None
        if not self.told:
            rescues = Rescues()
            rescues.add(self.native)
            rescues.send(self.number)
        self.send_remarks()
        self.note(wire.LIVE_NOTE_KIND_FAULT, self.native.hwl_fault())
        shortage = self.native.hwl_shortage()
        if not self.budget and library.hw_refused():
            shortage = b"an allocation of %d bytes passed the limit" % library.hw_refused()
        self.note(wire.LIVE_NOTE_KIND_SHORTAGE, shortage)

    def send_remarks(self):
        text = self.native.hwl_remark(self.remarks)
        while text is not None:
            self.note(wire.LIVE_NOTE_KIND_REMARK, text)
            self.remarks += 1
            text = self.native.hwl_remark(self.remarks)

    def remark(self, text):
        encode.send(wire.TYPE_LIVE_NOTE, struct.pack("<B", wire.LIVE_NOTE_KIND_REMARK) + encode.text(text))

    def region_entered(self):
        """What torch.compile has made runs."""
        if self.regions is not None and not self.backwards.depth and self.is_trainer():
            self.regions.entered()

    def note(self, kind, text):
        if text:
            encode.send(wire.TYPE_LIVE_NOTE, struct.pack("<B", kind) + encode.text(text.decode("utf-8", "replace")))


_current = None
_watching_exit = False


def verification(flags):
    """How much is compared, as the runtime counts it (live/runtime/verifier.h)."""
    levels = (wire.CONFIG_VERIFY_OFF, wire.CONFIG_VERIFY_SAMPLED, wire.CONFIG_VERIFY_FULL)
    return next((level for level, flag in enumerate(levels) if flags & flag), len(levels))


def start(flags, rank):
    """Why no plan is carried out; "" where one is. `flags`: those of the configuration."""
    global _current, _watching_exit
    if library.hw_patch() == 0:
        encode.send_gap("live bytes", "the calls of the framework's allocator could not be counted")
    native, why = load()
    if native is None:
        return why
    known = list(programs(rank))
    for path in known:
        why = native.hwl_add(path).decode()
        if why:
            return why
    if not flags & wire.CONFIG_RUNNING:  # else from the first whole step on
        library.hw_limit()
    gpu.count_blocks(native.hwl_count_cuda, native.hwl_limit_cuda)
    heuristic = library.hw_heuristic()
    plans = library.hw_programs() if flags & wire.CONFIG_PLANNERS else b""
    if heuristic >= 0:
        native.hwl_keep_within(heuristic, bool(plans), not flags & wire.CONFIG_ON_OOM)
        layout = frame_layout()
        if layout is not None:
            native.hwl_lines(layout, os.fsencode(FRAMEWORK))
    native.hwl_verify(verification(flags), kept_ops(), bool(flags & wire.CONFIG_STABLE_SOURCES))
    if plans and rank >= 0:
        plans += b".rank%d" % rank
    _current = Live(native, bool(flags & wire.CONFIG_RUNNING), heuristic >= 0, plans,
                    bool(flags & wire.CONFIG_PARTITION))
    if known:
        _current.awaits = awaiting(native, rank, len(known))
    if flags & wire.CONFIG_CURVES:
        native.hwl_trace()
        _current.next_curve = 0
    _current.install()
    if not _watching_exit:
        _watching_exit = True
        atexit.register(at_exit)
        os.register_at_fork(after_in_child=in_child)
    return ""


def forget(live):
    global _current
    if _current is live:
        _current = None


def at_exit():
    blocking.hw_leave_interpreter()
    if _current is not None:
        try:
            _current.finish()
        except Exception:
            pass


def in_child():
    """What is dropped comes back to a forked process, too, where it reads it."""
    global _current
    live, _current = _current, None
    if live is not None:
        live.forked()


def trains():
    """A step of the training has begun in this process."""
    return _current is not None and bool(_current.active or _current.pending or _current.number)


def leave():
    if _current is not None:
        _current.remove()


def stop():
    """The process that started it has gone: from its next step on the program trains without a plan. Whether it will."""
    live = _current
    if live is None:
        return False
    live.leaving = True
    return True
