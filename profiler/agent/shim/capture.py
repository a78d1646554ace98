# SPDX-License-Identifier: MIT
"""The dispatch mode that sees every op, and what is recorded of each."""
import _thread
import contextlib
import ctypes
import re
import traceback

import torch
from _highwater import blocking, encode, gpu, library, wire
from _highwater.by_hand import ByHand
from _highwater.encode import Broken
from _highwater.gradients import Gradients, mark
from _highwater.layers import Layers
from _highwater.native import NativeRegistry, load_native
from _highwater.stacks import NO_STACK, Stacks
from _highwater.steps import FINISHED, Steps
from _highwater.tensors import Registry, state_bytes
from _highwater.timing import Timing
from _highwater.trainer import Trainer
from torch.utils import _python_dispatch

Tensor = torch.Tensor
EAGERLY = "force_eager"  # a stance of torch's compiler

# Change the tensor's metadata, not the bytes of its storage.
METADATA_OPS = frozenset((
    "t_", "transpose_", "squeeze_", "unsqueeze_", "swapdims_", "swapaxes_", "as_strided_",
    "detach_", "resize_", "resize_as_", "set_", "swap_dims_", "movedim_", "rename_"))
# Consume a generator without a tag or an argument that says so in some versions.
RANDOM_OPS = frozenset(("_fused_dropout", "native_dropout", "rrelu_with_noise",
                        "rrelu_with_noise_", "_standard_gamma", "poisson", "binomial",
                        "multinomial", "_sample_dirichlet", "randperm"))


class OpInfo:
    """What the schema of an op says; looked at once."""

    __slots__ = ("name", "overload", "writes", "random", "adopts")

    def __init__(self, func):
        schema = func._schema
        self.name = schema.name
        self.overload = schema.overload_name
        short = self.name.rpartition("::")[2]
        tags = {str(tag).rpartition(".")[2] for tag in getattr(func, "tags", ())}
        metadata = short in METADATA_OPS or "inplace_view" in tags
        # Sets a tensor upon a storage, which no argument names.
        self.adopts = short == "set_" and self.overload.startswith("source_Storage")
        self.writes = []
        if short.startswith("rrelu_with_noise") or short == "_cudnn_rnn":
            # Writes its noise, or the state from which cuDNN drops out, without saying so in its schema.
            self.writes.extend((at, a.name) for at, a in enumerate(schema.arguments)
                               if a.name in ("noise", "dropout_state") and not short.endswith("backward"))
        self.random = short in RANDOM_OPS or "nondeterministic_seeded" in tags
        for at, argument in enumerate(schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write and not metadata:
                self.writes.append((at, argument.name))
            if "Generator" in str(argument.type):
                self.random = True

    def written(self, args, kwargs):
        for at, name in self.writes:
            value = args[at] if at < len(args) else kwargs.get(name)
            if isinstance(value, Tensor):
                yield value
            elif isinstance(value, (list, tuple)):
                yield from (item for item in value if isinstance(item, Tensor))


def flatten(out):
    """The tensors of a result, in order; undefined ones have no place."""
    if isinstance(out, Tensor):
        return [out]
    if isinstance(out, (list, tuple)):
        return [tensor for item in out for tensor in flatten(item)]
    return []


def bytes_asked_for(error):
    """Of an error that says that memory ran out; None for any other."""
    text = str(error)
    host = re.search(r"you tried to allocate (\d+) bytes", text)
    if host:
        return int(host.group(1))
    device = re.search(r"out of memory\. Tried to allocate ([0-9.]+) ([KMGT]?)i?B", text)
    if device:
        return int(float(device.group(1)) * 1024 ** " KMGT".index(device.group(2) or " "))
    return None


class Mode(_python_dispatch.TorchDispatchMode):
    def __init__(self, capture):
        super().__init__()
        self.capture = capture

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return self.capture.dispatch(func, args, kwargs or {})


class Capture:
    def __init__(self, on_finish, modules, forwards, late):
        config = wire.CaptureConfig()
        library.hw_config(ctypes.byref(config))
        self.on_finish = on_finish
        self.modules = modules
        self.forwards = forwards
        self.by_modules = False  # a forward with gradients has begun with one
        self.failed = False
        self.trainer = Trainer(self.lose)
        self.quick = 0  # the thread whose ops are seen in C++
        self.context = None  # where it looks up the layer
        self.mode = None
        self.window = wire.OpWindow()
        self.window_at = ctypes.byref(self.window)
        self.timing = Timing()
        self.contents = bool(config.flags & wire.CONFIG_CONTENTS)
        self.needs_gpu = bool(config.flags & wire.CONFIG_GPU)
        self.registry = Registry(self.contents)
        self.stacks = Stacks(config.flags)
        self.entered = False
        self.counting = False
        self.layers = Layers()
        self.gradients = Gradients(self.layers)
        self.by_hand = ByHand()
        self.attached = bool(config.flags & wire.CONFIG_RUNNING)
        self.steps = Steps(self, config.steps, config.warmup, max(1, config.every), self.attached or late,
                           bool(config.flags & wire.CONFIG_ON_OOM))
        self.arguments = encode.Arguments(self.touch, self.use_generator)
        self.infos = {}
        self.ops = 0
        self.stance = None  # of torch's compiler, while it is ours
        self.kernels = None  # that torch.compile has made
        self.optimizer_depth = 0
        self.inputs = []
        self.layer = -1
        self.stack = NO_STACK
        self.generators = [torch.default_generator]
        self.generator_epochs = {}

    # Entering and leaving.

    def enter(self, compiled):
        """Begins to see ops. Compiled code runs op by op meanwhile: torch is asked for it or, before 2.6, a
        dispatch mode brings it about. What only the mode can tell: why an op failed."""
        mode = _python_dispatch._get_current_dispatch_mode()
        # torch.compile's code runs for the first time in a mode that checks what ops return.
        if mode is not None and not (self.sees_kernels() and type(mode).__module__.startswith("torch._functorch.")):
            encode.send_gap("a step", "the program uses a dispatch mode of its own")
            return False
        blocking.hw_gpu_begin(self.needs_gpu)
        if compiled and not self.steps.until_failure:
            self.kernels.begin()
        if compiled and not self.sees_kernels() and hasattr(torch.compiler, "set_stance"):
            self.stance = torch.compiler.set_stance(EAGERLY)
        self.kernels.watch(self.sees_kernels())
        unasked = compiled and not self.sees_kernels() and self.stance is None
        library_of_ours = None if self.entered or unasked or self.steps.until_failure \
            else load_native(self.contents, self.stacks.mode)
        if library_of_ours is not None:
            self.registry = NativeRegistry(library_of_ours, self.registry.owned)
            self.context = self.registry.context
        self.entered = True
        if self.registry.native:
            if not self.counting:
                self.count_blocks()
                self.registry.library.hwn_recount()
                self.layers.forget_trees()
            self.registry.library.hwn_enter()
            self.mode = self.registry
            self.quick = self.trainer.ident
            self.moved()
        else:
            gpu.miss_blocks()
            if not self.timing.fresh_ns:
                self.timing.calibrate()
            self.mode = Mode(self)
            self.mode.__enter__()
        if self.failed:  # the recorder has gone meanwhile, and another thread has taken the hooks out
            self.leave()
            blocking.hw_gpu_stop()
            return False
        return True

    def sees_kernels(self):
        """Those that torch.compile has made come by as ops. Under a dispatch mode the compiler is left out."""
        return self.kernels.visible() and not self.steps.until_failure

    def run_eagerly(self):
        """The program compiles for the first time: what is compiled while ops are seen would be so for them only. False:
        none are seen, or it cannot be asked for."""
        if self.sees_kernels() or self.mode is None or not hasattr(getattr(torch, "compiler", None), "set_stance"):
            return False
        if self.stance is None:
            self.stance = torch.compiler.set_stance(EAGERLY)
        self.steps.tell_compiled()
        return True

    def leave(self):
        """Only the thread that entered the mode can leave it, and only while it is innermost; the
        capture in C++ is left by any."""
        if self.stance is not None:
            self.stance.__exit__(None, None, None)
            self.stance = None
        mode = self.mode
        if mode is None:
            return True
        self.kernels.watch(False)
        if mode is self.registry:
            self.quick = 0
            self.modules.rest()
            mode.library.hwn_leave()
            self.mode = None
            blocking.hw_gpu_end()
            return True
        if _thread.get_ident() != self.trainer.ident:
            return False
        if _python_dispatch._get_current_dispatch_mode() is not mode:
            return False
        mode.__exit__(None, None, None)
        self.mode = None
        blocking.hw_gpu_end()
        return True

    def count_blocks(self):
        """Of the framework's allocator, from here on."""
        self.counting = True
        if library.hw_patch() == 0:
            encode.send_gap("live bytes and workspaces",
                            "the calls of the framework's allocator could not be counted")

    def rest(self):
        """Nothing is counted between steps that are far apart."""
        if self.registry.native:
            self.counting = False
            library.hw_unpatch()

    def finish(self):
        self.leave()
        self.registry.release()
        blocking.hw_gpu_stop()
        self.on_finish()
        encode.send(wire.TYPE_DONE, b"")

    def give_up(self, error):
        """Something went wrong in here, or the recorder has gone: the training goes on without us."""
        if self.failed:
            return
        self.failed = True
        self.steps.state = FINISHED
        try:
            if not isinstance(error, Broken):
                text = "".join(traceback.format_exception(
                    type(error), error, error.__traceback__)).encode("utf-8", "replace")[-4000:]
                encode.send(wire.TYPE_FAULT, len(text).to_bytes(4, "little") + text)
        except Exception:
            pass
        self.retire()

    def retire(self):
        """Takes everything out, now or, where the mode cannot be left here, at a later hook."""
        try:
            if self.leave():
                self.registry.release()
                self.on_finish(True)
        except Exception:
            pass

    def check(self):
        """The capture in C++ cannot tell by itself that it has ended."""
        if self.registry.native and not self.failed:
            fault = self.registry.fault()
            if fault is not None:
                self.give_up(RuntimeError(fault) if fault else Broken())

    def concerns(self):
        """Whether the calling thread is the one whose training is watched, or may become it."""
        return not self.failed and self.steps.state != FINISHED and not self.trainer.is_other()

    def step_elsewhere(self):
        """An Optimizer.step of a thread that is not watched."""
        turn = self.trainer.turn
        if not turn.acquire(False):
            return  # the one that is watched is in a hook of ours: no wonder that it does not train
        try:
            if self.failed or self.steps.state == FINISHED or self.gradients.depth:
                return  # within its own backward: one of its threads
            if self.trainer.stepped_elsewhere() and self.leave():
                self.lose()
        finally:
            turn.release()

    def lose(self):
        """The watched thread trains no longer: another may."""
        if not self.failed and self.steps.state != FINISHED:
            try:
                if not self.leave():
                    self.mode = None  # the mode has gone with its thread
                    blocking.hw_gpu_end()
                self.layers.stack = []
                self.gradients.depth = self.optimizer_depth = 0
                self.steps.lose()
            except Exception as error:
                self.give_up(error)
        self.trainer.let_go()

    # One op.

    def dispatch(self, func, args, kwargs):
        if self.mode is None or self.failed:
            return func(*args, **kwargs)
        info = self.infos.get(func)
        if info is None:
            info = self.infos[func] = OpInfo(func)
        if info.name.startswith("profiler::"):
            library.hw_pause(1)  # a profiler's own little tensors are no part of the step
            try:
                return func(*args, **kwargs)
            finally:
                library.hw_pause(0)
        try:
            text = self.before(info, args, kwargs)
        except Exception as error:
            self.give_up(error)
            return func(*args, **kwargs)
        library.hw_begin(self.window_at)
        try:
            out = func(*args, **kwargs)
        except RuntimeError as error:
            asked = bytes_asked_for(error)
            if asked is not None and self.steps.until_failure:
                self.ran_out(info, text, asked)
            raise
        library.hw_end(self.window_at)
        try:
            self.after(info, args, kwargs, text, out)
        except Exception as error:
            self.give_up(error)
        return out

    def before(self, info, args, kwargs):
        self.registry.poll()
        self.gradients.settle()
        self.inputs = []
        self.layer = self.current_layer()
        self.stack = self.current_stack()
        self.explicit_generator = False
        text = self.arguments.encode(args, kwargs)
        if info.random and not self.explicit_generator:
            self.use_generator(torch.default_generator)
        return text

    def after(self, info, args, kwargs, text, out):
        registry, window = self.registry, self.window
        live, begin, peak, end = window.live_before, window.begin_ns, window.peak, window.end_ns
        registry.op_peak = max(registry.op_peak, peak + registry.uncounted)
        id, layer, phase = self.ops, self.layer, self.phase()
        results = flatten(out)
        if info.adopts:  # what it read is known by the result only; a loader's batch is new
            for tensor in results:
                self.touch(tensor)
        self.ops = id + 1
        seq = registry.next_seq()
        outputs, fresh_bytes = [], 0
        for tensor in results:
            try:
                storage, tensor_id, fresh = registry.result(tensor, id, phase, layer, seq)
            except (NotImplementedError, AttributeError):
                if tensor.device.type != "meta":
                    encode.send_gap("a result of " + info.name, "it has no plain storage")
                continue
            if fresh:
                fresh_bytes += storage.bytes
            storage.phase = phase if fresh else storage.phase
            storage.layer, storage.stack = layer, self.stack
            outputs.append((tensor_id, fresh))
        writes = {}
        if info.writes:
            for tensor in info.written(args, kwargs):
                storage = registry.lookup(tensor)
                if storage is not None and storage.id not in writes:
                    writes[storage.id] = storage.version
                    storage.version += 1
        encode.send_op(
            (id, seq, begin, self.timing.corrected(end - begin, bool(results) and not writes),
             max(0, peak - live - fresh_bytes),
             live + registry.uncounted, layer, _thread.get_native_id(), self.stack, phase, info.random),
            info.name, info.overload, text, self.inputs, outputs, list(writes.items()))
        if torch.is_grad_enabled():
            self.gradients.remember(results, layer, self.stack)

    def ran_out(self, info, text, asked):
        """The op counts as one that needs what it asked for, so that the step's peak says it."""
        registry, window = self.registry, self.window
        try:
            library.hw_end(self.window_at)
            live, begin, peak, end = window.live_before, window.begin_ns, window.peak, window.end_ns
            registry.op_peak = max(registry.op_peak, live + asked + registry.uncounted)
            encode.send_op(
                (self.ops, registry.next_seq(), begin, max(1, end - begin), max(asked, peak - live),
                 live + registry.uncounted, self.layer, _thread.get_native_id(), self.stack, self.phase(), False),
                info.name, info.overload, text, self.inputs, (), ())
            self.ops += 1
            self.steps.ran_out("it ran out of memory in %s, which asked for %d bytes more" %
                               (info.name, asked))
        except Exception as error:
            self.give_up(error)
        self.give_up(Broken())

    def touch(self, tensor):
        """An argument: its id; notes the read, the contents of a constant, its node's layer."""
        registry = self.registry
        try:
            storage, id = registry.constant(tensor, self.layer)
        except (NotImplementedError, AttributeError, RuntimeError):
            if tensor.device.type != "meta":
                encode.send_gap("an argument of type " + type(tensor).__name__,
                                "it has no plain storage")
            return None
        registry.store_contents(storage, tensor)
        self.inputs.append((id, storage.version))
        if storage.op >= 0 and tensor.requires_grad:
            mark(tensor, storage.layer, storage.stack)
        return id

    def use_generator(self, generator):
        """The id of a generator; its state is sent before its first use in a step."""
        self.explicit_generator = True
        for id, known in enumerate(self.generators):
            if known is generator:
                break
        else:
            id = len(self.generators)
            self.generators.append(generator)
        if self.generator_epochs.get(id) != self.registry.epoch:
            self.generator_epochs[id] = self.registry.epoch
            library.hw_pause(1)
            try:
                state = state_bytes(generator.get_state())
            finally:
                library.hw_pause(0)
            encode.send(wire.TYPE_GENERATOR, encode._TWO.pack(self.registry.seq, id) +
                        encode.text(str(generator.device)) + state)
        return id

    # Where we are.

    def phase(self):
        if self.gradients.depth:
            return wire.PHASE_BACKWARD
        if self.optimizer_depth and not self.layers.stack:
            return wire.PHASE_OPTIMIZER
        return wire.PHASE_FORWARD

    def current_stack(self):
        """In the backward, of the op that made the node."""
        if self.gradients.depth and not self.layers.stack and self.gradients.stack != NO_STACK:
            return self.gradients.stack
        return self.stacks.now()

    def current_layer(self):
        if self.layers.stack:
            return self.layers.stack[-1][1]
        if self.gradients.depth:
            return self.gradients.current
        if self.optimizer_depth:
            return self.layers.optimizer_layer
        return self.layers.loss_layer

    @contextlib.contextmanager
    def paused(self):
        """What a profiler's own scopes do is no part of the step."""
        registry = self.registry
        if registry.native:
            registry.library.hwn_pause(1)
        try:
            yield
        finally:
            if registry.native:
                registry.library.hwn_pause(0)

    def swap(self, swap, one, other):
        """torch.utils.swap_tensors refuses tensors to which there are weak references: ours go before, and come back."""
        with self.trainer.turn:
            self.gradients.settle()
            layers = []
            for tensor in (one, other):
                layers.append(self.layers.let_go(tensor))
                self.registry.let_go(tensor)
            try:
                with self.paused():  # it looks at nodes of the graph by ops of its own
                    return swap(one, other)
            finally:
                for tensor, layer in zip((one, other), layers):
                    if layer is not None:
                        self.layers.learn_tensor(tensor, layer, self.registry)

    def moved(self):
        """The program has gone to another layer or phase."""
        if self.mode is not None and self.registry.native:
            layer = self.current_layer()
            if self.gradients.depth and not self.layers.stack:
                layer = wire.BACKWARD_LAYER
            context = self.context
            context[0], context[1] = layer, self.phase()
            if context[2]:
                self.check()

    def enter_layer(self, path, kind):
        """What comes is part of the layer with this path, in the main model, until the program has moved()."""
        if self.mode is None or not self.registry.native or self.quick != _thread.get_ident():
            return False
        self.context[0] = self.layers.of(path or "(root)", kind)
        return True

    def before_backward(self, roots, gradients):
        """Outermost only. What forward left alive is what it saved for now."""
        self.steps.backward()
        if self.mode is None:
            return []
        for gradient in gradients or ():
            if gradient is not None:
                self.categorize(gradient, wire.CATEGORY_GRADIENT, self.layers.loss_layer)
        self.layers.learn_lazy(self.registry)
        self.registry.save_activations()
        self.gradients.current, self.gradients.stack = self.layers.loss_layer, NO_STACK
        if self.registry.native:
            self.registry.library.hwn_backward_layer(self.layers.loss_layer)
            return []
        return self.gradients.watch(roots)

    def await_forward(self):
        """Where modules do not tell that it begins."""
        if not self.told_by_modules() and (self.mode is None or self.registry.native):
            self.forwards.watch()

    def told_by_modules(self):
        return self.by_modules and self.modules.watching

    def forward_by_module(self):
        if not self.by_modules:
            self.by_modules = True
            self.forwards.unwatch()
            self.steps.begin_again()
        if not self.steps.active:
            self.steps.forward()

    def forward_by_op(self):
        """False: it is none, but of a backward pass."""
        if self.gradients.depth:
            return False
        if self.told_by_modules() or not self.trainer.take():
            return True
        if self.by_hand.ends():
            self.end_by_hand()
            self.moved()
        if not self.steps.active:
            self.steps.forward(by_op=True)
        return True

    def after_backward(self):
        if self.mode is not None:
            self.registry.categorize_gradients(self.trainer.has_others())
            self.layers.categorize_sharded(self.registry)
        self.by_hand.backward()
        if self.by_hand.certain:
            self.optimizer_depth = 1
        if self.by_hand.may_end():
            self.steps.await_forward()

    def end_by_hand(self):
        """A forward begins, after an update by hand or none at all."""
        self.optimizer_depth = 0
        if self.by_hand.ended():
            encode.send_gap("the ends of steps", "the program %s: a step ends where the next forward begins" % (
                "uses no optimizer of torch's" if self.by_hand.certain else "compiles its optimizer"))
        self.steps.optimizer_done(())

    def program_ends(self):
        """A step that ends with it is one, too."""
        if self.by_hand.remains(self.steps.recorded) and self.steps.unended() and not self.gradients.depth:
            if self.by_hand.ended():
                encode.send_gap("the ends of steps", "no optimizer of torch's has made a step: this one ends with the "
                                "program")
            self.steps.optimizer_done(())

    def categorize(self, tensor, category, layer):
        if isinstance(tensor, Tensor):
            self.registry.categorize(tensor, category, layer)
