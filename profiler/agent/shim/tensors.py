# SPDX-License-Identifier: MIT
"""Which storages and tensors there are, their versions, and when storages go.

A storage is known by the address of its StorageImpl, which stays its own as long as we hold a weak
reference. Nothing here holds a strong one: reference counts decide in autograd whether a gradient
is cloned or stolen, so a held output would change the run that is being watched.
"""
import _thread
import ctypes
import gc
import struct
import weakref

import torch
from _highwater import encode, library, wire
from _highwater.sharded import local
from _highwater.stacks import NO_STACK
from _highwater.wire import CATEGORY_TEMPORARY, CATEGORY_UNKNOWN
from torch.nn.parameter import UninitializedTensorMixin

_any_storage_of = getattr(torch.Tensor, "untyped_storage", None) or torch.Tensor._storage
_Untyped = torch.UntypedStorage
_expired = _Untyped._expired
_free_weak = _Untyped._free_weak_ref

PLAIN = frozenset((torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64))


def _storage_of(tensor):
    if tensor.device.type == "meta":
        raise NotImplementedError("it has no bytes, and how many it would have may be a symbol")
    return _any_storage_of(tensor)


class Storage:
    __slots__ = ("id", "weak", "bytes", "version", "epoch", "op", "phase", "tensors", "first",
                 "stored", "category", "counted", "layer", "stack", "address")


class Registry:
    native = False

    def __init__(self, contents):
        self.contents = contents  # floating constants too
        self.live = {}            # weak address -> Storage
        self.watched = {}         # address of its block -> weak address
        self.unwatched = set()    # weak addresses: no release of a block tells that they go
        self.owned = {}           # id -> (weak reference, category, layer)
        self.alive = {}           # id of a storage -> ids of the tensors that a scan found
        self.freed = (ctypes.c_int64 * wire.MOST_FREED)()
        self.epoch = 0            # goes up with every possible start of a step
        self.seq = 0
        self.storages = 0
        self.tensors = 0
        self.uncounted = 0        # live bytes that the framework's allocator did not make
        self.op_peak = 0          # highest counted + uncounted bytes during an op of this step

    def next_epoch(self):
        self.epoch += 1
        self.op_peak = 0

    def step_began(self, seq):
        """How old a block is, the capture in C++ knows."""

    def own(self, tensor, category, layer):
        """Whatever storage the tensor lies on is of this category, a parameter's gradient one."""
        tensor = local(tensor)
        moved = self.owned.get(id(tensor), (None, category, layer))[2] != layer
        self.owned[id(tensor)] = weakref.ref(tensor), category, layer
        storage = self.lookup(tensor) if moved else None
        if storage is not None and storage.category == category:
            encode.send_category(category, -1 if layer is None else layer, [storage.id])
        else:
            self.categorize(tensor, category, layer)

    def let_go(self, tensor):
        """No weak reference to the tensor is left."""
        self.owned.pop(id(tensor), None)

    def categorize_owned(self):
        """Gives their categories to what own() has named; how many of them have gone."""
        before = len(self.owned)
        self.owned = {id: own for id, own in self.owned.items() if own[0]() is not None}
        for weak, category, layer in self.owned.values():
            self.categorize(weak(), category, layer)
        return before - len(self.owned)

    def categorize_gradients(self, only_used):
        """`only_used`: of parameters that this step has used; other threads may set those of others."""
        for weak, category, layer in self.owned.values():
            tensor = weak()
            if category != wire.CATEGORY_PARAMETER or tensor is None or not tensor.is_leaf:
                continue
            storage = self.lookup(tensor) if only_used else None
            if only_used and (storage is None or storage.stored != self.epoch):
                continue
            if tensor.grad is not None:
                self.categorize(tensor.grad, wire.CATEGORY_GRADIENT, layer)

    def next_seq(self):
        seq = self.seq
        self.seq = seq + 1
        return seq

    def poll(self):
        """Notes the storages that have gone since the last call."""
        count = library.hw_freed(self.freed)
        if count < 0:
            self.sweep()
            return
        for address in self.freed[:count]:
            weak = self.watched.get(address)
            if weak is not None and (_expired(weak) or self.emptied(weak)):  # it may only have got another block
                del self.watched[address]
                self.gone(weak)
        if self.unwatched:
            for weak in [weak for weak in self.unwatched if _expired(weak)]:
                self.unwatched.discard(weak)
                self.gone(weak)

    def emptied(self, weak):
        """Whether its bytes have gone without it: FSDP takes those of gathered parameters away, and gives them back."""
        untyped = _Untyped._new_with_weak_ptr(weak)
        return untyped is not None and untyped.nbytes() == 0 < self.live[weak].bytes

    def sweep(self):
        """The same, by looking at every storage."""
        for weak in [weak for weak in self.live if _expired(weak)]:
            self.forget(self.live[weak])

    def forget(self, storage):
        if self.watched.get(storage.address) == storage.weak:
            del self.watched[storage.address]
        self.unwatched.discard(storage.weak)
        self.gone(storage.weak)

    def gone(self, weak):
        storage = self.live.pop(weak)
        _free_weak(weak)
        if not storage.counted:
            self.uncounted -= storage.bytes
        encode.send_free(storage.id, self.next_seq())

    def watch(self, storage, untyped, address):
        """Chooses how the end of the storage is noticed."""
        known = self.watched.get(address)
        storage.address = address
        if address and (known is None or _expired(known)) and (
                storage.counted or address % wire.BLOCK_ALIGNMENT == 0 and untyped.device.type == "cpu" and
                not untyped.is_shared() and library.hw_watch(address)):
            if known is not None:
                self.unwatched.add(known)
            self.watched[address] = storage.weak
            self.unwatched.discard(storage.weak)
        else:
            self.unwatched.add(storage.weak)

    def lookup(self, tensor):
        """The storage of a tensor, None when it is not known or has none (a sparse tensor)."""
        try:
            return self.live.get(_storage_of(tensor)._cdata)
        except (NotImplementedError, RuntimeError):
            return None

    def add_storage(self, tensor, untyped, op, phase, layer, seq):
        try:
            address = untyped.data_ptr()
        except RuntimeError as error:  # of a wrapper around other tensors
            raise NotImplementedError from error
        storage = Storage()
        storage.id = self.storages
        self.storages += 1
        storage.weak = untyped._weak_ref()
        storage.bytes = untyped.nbytes()
        storage.version = 0
        storage.epoch = self.epoch
        storage.op = op
        storage.phase = phase
        storage.layer, storage.stack = layer, NO_STACK
        storage.tensors = {}
        storage.first = None
        storage.stored = -1
        storage.category = CATEGORY_UNKNOWN
        storage.counted = storage.bytes == 0 or library.hw_block(address) >= 0
        if not storage.counted:
            self.uncounted += storage.bytes
        self.live[storage.weak] = storage
        self.watch(storage, untyped, address)
        encode.send_storage(storage.id, seq, storage.bytes, op, layer, address, CATEGORY_UNKNOWN,
                            str(tensor.device))
        return storage

    def has(self, storage, tensor):
        """Whether this very view of the storage is known."""
        return (tensor.storage_offset(), tensor.size(), tensor.stride(),
                tensor.dtype) in storage.tensors

    def tensor_id(self, storage, tensor, op):
        key = (tensor.storage_offset(), tensor.size(), tensor.stride(), tensor.dtype)
        id = storage.tensors.get(key)
        if id is None:
            id = self.tensors
            self.tensors = id + 1
            storage.tensors[key] = id
            if storage.first is None:
                storage.first = id
            encode.send_tensor(id, storage.id, op, key[0], str(key[3])[6:], key[1], key[2])
        return id

    def constant(self, tensor, layer=-1):
        """Registers what was made out of sight; (storage, tensor id) of anything."""
        untyped = _storage_of(tensor)
        storage = self.live.get(untyped._cdata)
        if storage is not None and untyped.nbytes() != storage.bytes:  # no op gave it these
            self.forget(storage)
            storage = None
        if storage is None:
            storage = self.add_storage(tensor, untyped, -1, wire.PHASE_UNKNOWN, layer, self.next_seq())
        return storage, self.tensor_id(storage, tensor, -1)

    def scan(self, passing, others):
        """Registers every tensor there is, for finals() too; the optimizers. `passing`: objects that are
        only passing through; `others`: other threads train. Where there are other threads at all, one of their
        tensors may go at any time, and goes wrong if Python still refers to it: only what is trained is registered."""
        self.alive = {}
        passing = set(map(id, passing))
        alone = not others and _thread._count() == 0
        tensors, optimizers = find_objects() if alone else ([], find_optimizers())
        self.note_all(parameters_of(optimizers), gradients=alone)
        if alone:
            self.note_all(tensors_of(self.owned.values()), gradients=True)
        self.note_all((tensor for tensor in tensors if id(tensor) not in passing), gradients=True)
        return optimizers

    def note_all(self, tensors, gradients=False):
        for tensor in tensors:
            self.note(tensor)
            if gradients and tensor.requires_grad and tensor.is_leaf and tensor.grad is not None:
                self.note(tensor.grad)

    def note(self, tensor):
        try:
            known = self.lookup(tensor)
            if known is not None and known.op >= 0 and not self.has(known, tensor):
                return  # a view made out of sight: its storage counts, it cannot be remade
            storage, id = self.constant(tensor)
            self.alive.setdefault(storage.id, set()).add(id)
        except (NotImplementedError, RuntimeError, AttributeError):
            pass  # sparse and other tensors without a storage

    def finals(self):
        """Tensors that live, at least one a storage, as 64-bit ids; asked right after a scan."""
        finals = []
        for storage in self.live.values():
            finals.extend(sorted(self.alive.get(storage.id, ())) or [storage.first])
        return struct.pack("<%dq" % len(finals), *finals)

    def categorize(self, tensor, category, layer):
        storage = self.lookup(local(tensor))
        if storage is not None and storage.category in (CATEGORY_UNKNOWN, CATEGORY_TEMPORARY):
            storage.category = category
            encode.send_category(category, -1 if layer is None else layer, [storage.id])

    def save_activations(self):
        """What forward left alive is what it saved for now."""
        self.poll()
        saved = {}
        for storage in self.live.values():
            if storage.op >= 0 and storage.epoch == self.epoch and \
                    storage.phase == wire.PHASE_FORWARD and storage.category == CATEGORY_UNKNOWN:
                storage.category = wire.CATEGORY_ACTIVATION
                saved.setdefault(storage.layer, []).append(storage.id)
        for layer, storages in saved.items():
            encode.send_category(wire.CATEGORY_ACTIVATION, layer, storages)

    def result(self, tensor, op, phase, layer, seq):
        """An output of an op: (storage, tensor id, whether the op made the storage)."""
        untyped = _storage_of(tensor)
        storage = self.live.get(untyped._cdata)
        fresh = storage is None
        if fresh:
            storage = self.add_storage(tensor, untyped, op, phase, layer, seq)
        elif untyped.nbytes() != storage.bytes:
            self.resized(storage, untyped)
        return storage, self.tensor_id(storage, tensor, op), fresh

    def resized(self, storage, untyped):
        if not storage.counted:
            self.uncounted += untyped.nbytes() - storage.bytes
        storage.bytes = untyped.nbytes()
        if self.watched.get(storage.address) == storage.weak:
            del self.watched[storage.address]
        self.watch(storage, untyped, untyped.data_ptr())
        encode.send_resize(storage.id, storage.bytes)

    def store_contents(self, storage, tensor):
        """Bytes of a constant of this step, before the first op that uses it."""
        if storage.stored == self.epoch or (storage.op >= 0 and storage.epoch == self.epoch):
            return
        storage.stored = self.epoch
        size = storage.bytes
        if size == 0 or not (self.contents or size <= wire.SMALL_CONTENTS or tensor.dtype in PLAIN):
            return
        if tensor.device.type != "cpu":
            encode.send_gap("contents of storage %d" % storage.id, "it is not in host memory")
        elif size > wire.MAX_PLAIN_CONTENTS and not self.contents:
            encode.send_gap("contents of storage %d" % storage.id,
                            "%d bytes are more than is stored without --contents" % size)
        else:
            address = _storage_of(tensor).data_ptr()
            if library.hw_send_contents(self.seq, storage.id, address, size) < 0:
                raise encode.Broken()

    def release(self):
        for weak in self.live:
            _free_weak(weak)
        self.live = {}
        self.watched = {}
        self.unwatched = set()


def find_objects():
    """Tensors and optimizers."""
    tensors, optimizers, kinds = [], [], {}
    base, optimizer_base = torch.Tensor, torch.optim.Optimizer
    for item in gc.get_objects():
        kind = type(item)  # never item.__class__: proxies answer it with code of their own
        wanted = kinds.get(kind)
        if wanted is None:
            wanted = kinds[kind] = (0 if issubclass(kind, UninitializedTensorMixin) else
                                    1 if issubclass(kind, base) else
                                    2 if issubclass(kind, optimizer_base) else 0)
        if wanted == 1:
            tensors.append(item)
        elif wanted == 2:
            optimizers.append(item)
    return tensors, optimizers


def find_optimizers():
    """Without taking hold of anything else: objects refer to their class (since Python 3.9)."""
    classes = [torch.optim.Optimizer]
    for each in classes:
        classes.extend(derived for derived in type.__subclasses__(each) if derived not in classes)
    return [item for item in gc.get_referrers(*classes) if type(item) in classes]


def parameters_of(optimizers):
    """What is trained. It is numbered first, then what modules own: where a scan finds tensors depends on when Python
    last collected garbage."""
    return [parameter for optimizer in optimizers for group in optimizer.param_groups for parameter in group["params"]
            if not isinstance(parameter, UninitializedTensorMixin)]


def tensors_of(owned):
    """In the order of their modules, as Registry.own() was told."""
    tensors = [weak() for weak, _, _ in owned]
    return [local(tensor) for tensor in tensors if tensor is not None]


def state_bytes(state):
    """A generator's state (a byte tensor) as bytes."""
    return ctypes.string_at(state.data_ptr(), state.numel())
