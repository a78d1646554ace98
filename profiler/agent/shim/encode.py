# SPDX-License-Identifier: MIT
"""Frames of the wire format (profiler/wire/format.h) and op arguments as JSON."""
import json
import struct

import torch
from _highwater import blocking, library, wire

_U32 = struct.Struct("<I")
_OP = struct.Struct("<9q2B")
_STORAGE = struct.Struct("<6qB")
_TENSOR = struct.Struct("<4q")
_USE = struct.Struct("<qi")
_OUTPUT = struct.Struct("<qB")
_TWO = struct.Struct("<2q")
_SOURCE = struct.Struct("<2qB")
_NODE = struct.Struct("<3q")


class Broken(Exception):
    """The recorder is gone: stop capturing, quietly."""


def send(kind, payload):
    status = library.hw_send(kind, payload, len(payload))
    if status == 1:
        status = blocking.hw_send_wait(kind, payload, len(payload))
    if status < 0:
        raise Broken()


def text(value):
    data = value.encode("utf-8", "surrogateescape")
    return _U32.pack(len(data)) + data


def send_storage(id, seq, bytes, creator, layer, address, category, device):
    send(wire.TYPE_STORAGE, _STORAGE.pack(id, seq, bytes, creator, layer, address, category) + text(device))


def send_tensor(id, storage, creator, offset, dtype, sizes, strides):
    n = len(sizes)
    send(wire.TYPE_TENSOR, _TENSOR.pack(id, storage, creator, offset) + text(dtype) +
         struct.pack("<H%dq" % (2 * n), n, *sizes, *strides))


def send_op(numbers, name, overload, arguments, inputs, outputs, writes):
    """numbers: id, seq, begin, duration, workspace, live, layer, thread, stack, phase, random."""
    send(wire.TYPE_OP, b"".join((
        _OP.pack(*numbers), text(name), text(overload), text(arguments),
        _U32.pack(len(inputs)), b"".join(_USE.pack(*use) for use in inputs),
        _U32.pack(len(outputs)), b"".join(_OUTPUT.pack(*output) for output in outputs),
        _U32.pack(len(writes)), b"".join(_USE.pack(*write) for write in writes))))


def send_source(id, line, framework, file, function):
    send(wire.TYPE_SOURCE_FRAME, _SOURCE.pack(id, line, framework) + text(file) + text(function))


def send_stack(id, parent, source):
    send(wire.TYPE_STACK_NODE, _NODE.pack(id, parent, source))


def send_free(storage, seq):
    send(wire.TYPE_FREE, _TWO.pack(storage, seq))


def send_resize(storage, bytes):
    send(wire.TYPE_RESIZE, _TWO.pack(storage, bytes))


def send_category(category, layer, storages):
    n = len(storages)
    send(wire.TYPE_CATEGORY, struct.pack("<BqI%dq" % n, category, layer, n, *storages))


def send_gap(what, why, begin=0, end=0):
    send(wire.TYPE_GAP, _TWO.pack(begin, end) + text(what) + text(why))


def send_milestone(what):
    send(wire.TYPE_MILESTONE, _U32.pack(what))


def _float(value):
    return '{"f":"%s"}' % value.hex()


class Arguments:
    """Op arguments as core/session/session.h describes them.

    `touch(tensor)` returns the id of a tensor, or None where it cannot be recorded;
    `generator(object)` the id of an explicit generator.
    """

    def __init__(self, touch, generator):
        self.touch = touch
        self.generator = generator
        self.plain = {
            type(None): lambda _: "null",
            bool: lambda value: "true" if value else "false",
            int: str,
            float: _float,
            str: json.dumps,
            complex: lambda value: '{"c":["%s","%s"]}' % (value.real.hex(), value.imag.hex()),
            torch.dtype: lambda value: '{"dtype":"%s"}' % str(value)[6:],
            torch.device: lambda value: '{"device":"%s"}' % value,
            torch.layout: lambda value: '{"layout":"%s"}' % str(value)[6:],
            torch.memory_format: lambda value: '{"memory_format":"%s"}' % str(value)[6:],
        }

    def encode(self, args, kwargs):
        value = self.value
        return '{"a":[%s],"k":{%s}}' % (
            ",".join([value(item) for item in args]),
            ",".join(["%s:%s" % (json.dumps(key), value(item)) for key, item in kwargs.items()]))

    def value(self, item):
        plain = self.plain.get(type(item))
        if plain is not None:
            return plain(item)
        if isinstance(item, torch.Tensor):
            id = self.touch(item)
            return self.opaque(item) if id is None else '{"t":%d}' % id
        if isinstance(item, (list, tuple)):
            return "[%s]" % ",".join([self.value(each) for each in item])
        if isinstance(item, torch.Generator):
            return '{"generator":%d}' % self.generator(item)
        if isinstance(item, int):
            return str(int(item))
        return self.opaque(item)

    def opaque(self, item):
        return '{"opaque":%s}' % json.dumps(type(item).__name__)
