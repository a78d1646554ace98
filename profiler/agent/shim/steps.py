# SPDX-License-Identifier: MIT
"""Where steps begin and end, and when to capture.

A step ends with the last Optimizer.step before the next forward with gradients. Which one was the
last is known only then, so every Optimizer.step ends the step provisionally (StepEnd) and the next
activity confirms it (StepConfirmed).
"""
import ctypes
import json
import os
import struct
import weakref

import torch
from _highwater import encode, library, wire
from _highwater.module_calls import compiles
from _highwater.sharded import local
from torch.nn.parameter import UninitializedTensorMixin

JOINING, WAITING, CAPTURING, FINISHED = range(4)  # joining: somewhere in a step that runs already


class Steps:
    def __init__(self, capture, wanted, warmup, every, running, until_failure):
        self.capture = capture
        self.wanted = wanted
        self.warmup = warmup    # steps still to be let through
        self.every = every
        self.until_failure = until_failure  # keep no step but the one that runs out of memory
        self.state = JOINING if running else WAITING
        self.active = False     # a forward or backward since the last Optimizer.step
        self.ended = False      # capturing: the step has a provisional end
        self.recorded = 0
        self.carried_peak = 0   # of the windows before further Optimizer.steps of the same step
        self.milestones = set()
        self.compiled = False   # told that it is
        self.shared = False     # told that other threads train, too
        self.uncounted = 0
        self.by_op = False      # the first step has begun with an op, and no module has been called since
        self.first = self.after = 0  # sequence numbers at which the step began, and the next one does
        self.environment = Environment()
        self.window = wire.MemoryWindow()
        self.optimizers = []    # weak references to those of the last scan
        self.states = set()     # ids of their tensors that the registry knows
        self.learnt = None      # what there was in them then

    def saw(self, milestone):
        if milestone not in self.milestones:
            self.milestones.add(milestone)
            encode.send_milestone(milestone)

    def forward(self, by_op=False):
        """A forward with gradients begins; only the first since a step's end matters."""
        self.saw(wire.MILESTONE_FORWARD)
        self.by_op = by_op and self.state == WAITING
        self.activity()

    def begins_soon(self):
        """With the next forward a step is recorded."""
        return self.state == WAITING and self.warmup == 0

    def begin_again(self):
        """What the step has begun with was no forward, if a module is called only now: weights were made."""
        if self.by_op and self.state == CAPTURING:
            self.scan((), self.capture.layers.main is not None)
            self.start()
        self.by_op = False

    def unended(self):
        return self.state == CAPTURING and self.active and not self.ended

    def backward(self):
        self.saw(wire.MILESTONE_BACKWARD)
        self.by_op = False
        if self.active:
            return
        if self.begins_soon():
            # No module ran, so the forward went by unseen: start after this step instead.
            self.warmup = 1
            encode.send_gap("the first step", "its forward was not seen: it calls no module")
        self.activity()

    def activity(self):
        self.active = True
        if self.state == CAPTURING and self.ended:
            self.confirm()
        elif self.begins_soon():
            self.begin(())

    def optimizer_done(self, passing):
        """An outermost Optimizer.step has returned."""
        self.saw(wire.MILESTONE_OPTIMIZER)
        if self.state == JOINING:
            self.state = WAITING
            self.active = False
            if self.warmup == 0:
                self.begin(passing)
        elif self.state == WAITING:
            if self.active:
                self.active = False
                self.warmup -= 1
                if self.warmup <= 0:
                    self.warmup = 0
                    self.begin(passing)
        elif self.state == CAPTURING:
            if self.active and self.until_failure:
                self.active = False
                self.scan(passing)
                self.start()
            elif self.active or self.ended:
                self.active = False
                self.end(passing)
            else:
                self.start()

    def await_forward(self):
        """With the next one the step ends."""
        if self.resting():
            self.capture.modules.watch()
        self.capture.await_forward()

    def resting(self):
        """Which module runs does not matter: the step that runs is not recorded, nor the first one."""
        return self.state == JOINING or \
            (self.state == WAITING and self.warmup > 0 and self.recorded > 0)

    def begin(self, passing):
        """Enters the mode; whatever lives now is a constant."""
        if not self.capture.enter(compiles()):
            self.capture.modules.watch()
            return
        self.capture.modules.watch(eagerly=self.capture.stance is not None)
        self.saw(wire.MILESTONE_CAPTURE)
        self.tell_compiled()
        self.state = CAPTURING
        self.ended = False
        registry = self.capture.registry
        registry.sweep()
        # Attached to a running program, no module has run yet: whose a parameter is, the step tells.
        self.scan(passing, self.capture.layers.main is not None)
        self.start()

    def tell_compiled(self):
        """Once, before what torch.compile has made runs otherwise than alone, as far as that is known then."""
        if not self.compiled and (self.capture.stance is not None or
                                  (compiles() and not self.capture.registry.native)):
            self.compiled = True
            encode.send_gap("compiled code", "torch.compile is not used in recorded steps: they "
                            "run op by op, which takes longer and may round differently")

    def start(self):
        """The step begins here; nothing before it counts."""
        registry = self.capture.registry
        registry.sweep()
        registry.next_epoch()
        self.categorize_owned(registry)
        library.hw_window(ctypes.byref(self.window))
        self.carried_peak = 0
        self.uncounted = registry.uncounted
        self.first = registry.seq
        registry.step_began(self.first)
        encode.send(wire.TYPE_STEP_START, struct.pack(
            "<3q", self.first, library.hw_now(), self.window.live + registry.uncounted))
        if not self.active:
            self.capture.await_forward()

    def end(self, passing):
        now = library.hw_now()
        registry = self.capture.registry
        registry.sweep()
        finals = self.finals(passing)
        library.hw_window(ctypes.byref(self.window))
        if registry.native:
            registry.tell_unknown(self.window.live, self.first)
        # What the allocator did not make (a batch in shared memory) may have come or gone since.
        always = min(self.uncounted, registry.uncounted)
        self.carried_peak = max(self.carried_peak, self.window.peak + always, registry.op_peak)
        encode.send(wire.TYPE_STEP_END, struct.pack(
            "<4q", registry.seq, now, self.window.live + registry.uncounted, self.carried_peak) +
            encode.text(self.environment.now(registry)) + struct.pack("<I", len(finals) // 8) + finals)
        self.tell_compiled()
        if self.capture.trainer.others and not self.shared:
            self.shared = True
            encode.send_gap("other threads", "models run in them, too: the steps of one thread are "
                            "recorded, and the live bytes are those of all")
        registry.next_epoch()
        self.uncounted = registry.uncounted
        self.after = registry.seq
        self.ended = True
        self.capture.modules.watch()
        self.capture.await_forward()
        library.hw_gpu_flush()

    def lose(self):
        """The thread that was watched trains no longer; a step that it has not ended does not count. Another one
        may be anywhere in a step of its own."""
        if self.state == CAPTURING and self.ended:
            self.confirm()
        if self.state != FINISHED:
            self.state = JOINING
        self.active = False

    def ran_out(self, why):
        """The step ends here, in the op that got no memory; it is the last one that is recorded."""
        encode.send_gap("the rest of the step", why)
        self.end(())
        encode.send(wire.TYPE_STEP_CONFIRMED, b"")
        encode.send(wire.TYPE_DONE, b"")

    def confirm(self):
        encode.send(wire.TYPE_STEP_CONFIRMED, b"")
        self.first = self.after
        self.capture.registry.step_began(self.first)
        self.recorded += 1
        self.ended = False
        self.carried_peak = 0
        if self.recorded >= self.wanted:
            self.state = FINISHED
            self.capture.finish()
        elif self.every > 1:
            self.capture.leave()
            self.capture.rest()
            self.state = WAITING
            self.warmup = self.every - 1

    def scan(self, passing, owners=True):
        """Looks for every tensor there is. `passing`: what is only passing through. `owners`: learn whose
        the optimizers' tensors are."""
        registry = self.capture.registry
        optimizers = registry.scan(passing, self.capture.trainer.has_others())
        self.optimizers = [weakref.ref(optimizer) for optimizer in optimizers]
        self.categorize_owned(registry)
        if owners:
            self.learn_optimizers(optimizers)

    def finals(self, passing):
        """The tensors alive at the end of a step; the native registry knows them by itself."""
        registry = self.capture.registry
        if registry.native and self.optimizers:
            self.categorize_owned(registry)
            optimizers = [optimizer for optimizer in (weak() for weak in self.optimizers) if optimizer is not None]
            if self.learnt != parts_of(optimizers):
                self.learn_optimizers(optimizers)
        else:
            self.scan(passing)
        return registry.finals()

    def categorize_owned(self, registry):
        """What is known to be a parameter or an optimizer's gets its category, on whatever storage
        it lies by now."""
        layers = self.capture.layers
        gone = registry.categorize_owned()
        if gone:
            layers.forget_trees()
        if gone or layers.found:
            self.states.clear()
            self.learnt, layers.found = None, False

    def learn_optimizers(self, optimizers):
        capture, states = self.capture, self.states
        self.learnt = parts_of(optimizers)
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if id(parameter) in states or isinstance(parameter, UninitializedTensorMixin):
                        continue
                    states.add(id(parameter))
                    capture.layers.learn_parameter(parameter, capture.registry)
            for parameter, state in list(optimizer.state.items()):
                layer = capture.layers.optimizer_layer
                if isinstance(parameter, torch.Tensor):
                    layer = capture.layers.layer_of_parameter(parameter)
                if isinstance(state, dict):
                    self.note_sharded(state)
                    for value in list(state.values()):
                        if id(value) not in states and isinstance(value, torch.Tensor):
                            states.add(id(value))
                            capture.registry.own(value, wire.CATEGORY_OPTIMIZER_STATE, layer)

    def note_sharded(self, state):
        """What an op on sharded tensors makes it makes unseen."""
        tensors = [each for each in list(state.values()) if isinstance(each, torch.Tensor)]
        parts = [local(each) for each in tensors if local(each) is not each]
        if parts:
            self.capture.registry.note_all(parts)


def parts_of(optimizers):
    """Their parameters and states, by id: categorize_owned() notices what goes and leaves its id to another one."""
    parts = []
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            parts.extend(map(id, group["params"]))
        for state in list(optimizer.state.values()):  # another thread may add to it
            if isinstance(state, dict):
                parts.extend(map(id, state.values()))
    return parts


class Environment:
    """What ops depend on besides their arguments, and how they were seen, as JSON."""

    def __init__(self):
        self.seen, self.known = None, {}
        self.interop_threads = None  # set for good before the first use; takes long to ask

    def now(self, registry):
        native = registry.native
        if self.interop_threads is None:
            self.interop_threads = torch.get_num_interop_threads()
        mkldnn = getattr(torch._C, "_get_mkldnn_enabled", torch.backends.mkldnn.is_available)
        seen = (torch.get_num_threads(), torch.get_default_dtype(), bool(mkldnn()),
                torch.are_deterministic_algorithms_enabled(), native)
        if seen != self.seen:
            self.seen = seen
            self.known = {
                "num_threads": seen[0],
                "num_interop_threads": self.interop_threads,
                "default_dtype": str(seen[1])[6:],
                "mkldnn": seen[2],
                "deterministic": seen[3],
                "torch_version": str(torch.__version__),
                "torch_package": os.path.dirname(torch.__file__),
                "capture": "native" if native else "python",
            }
        return json.dumps({**self.known, **(registry.unseen_writes() if native else {})})
