#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Writes the simulator log of one training step that is hard to plan: an unrolled LSTM, or a GAN
whose discriminator is unrolled (Metz et al. 2017), so that the backward pass runs through the
backward passes of its updates.

    unrolled_log.py lstm STEPS LAYERS > lstm.log
    unrolled_log.py gan UNROLLED LAYERS > gan.log

Times follow from work and bytes (10 TFLOP/s, 500 GB/s, 3 us a launch) in nanoseconds, sizes are of
float32 in bytes. A tensor is released after the last op that reads it.
"""
import itertools
import json
import sys


class Tape:
    """Ops in the order in which they ran, and what gives their gradients."""

    def __init__(self):
        self.sizes = {}  # elements by tensor
        self.constants = []
        self.calls = []  # (name, inputs, output, flops)
        self.gradients = {}  # tensor: function of its gradient, giving (input, gradient) pairs

    def constant(self, size):
        tensor = len(self.sizes)
        self.sizes[tensor] = size
        self.constants.append(tensor)
        return tensor

    def call(self, name, inputs, size, flops=0, gradient=None):
        tensor = len(self.sizes)
        self.sizes[tensor] = size
        self.calls.append((name, tuple(inputs), tensor, flops))
        if gradient:
            self.gradients[tensor] = gradient
        return tensor

    def elementwise(self, name, inputs, gradient=None):
        return self.call(name, inputs, self.sizes[inputs[0]], gradient=gradient)

    # Gradients are made of ops that have gradients themselves.

    def add(self, a, b):
        return self.elementwise("add", [a, b], lambda g: [(a, g), (b, g)])

    def multiply(self, a, b):
        return self.elementwise(
            "mul", [a, b], lambda g: [(a, self.multiply(g, b)), (b, self.multiply(g, a))])

    def scale(self, a):
        return self.elementwise("scale", [a], lambda g: [(a, self.scale(g))])

    def function(self, name, a):
        """One whose derivative follows from its result, as that of sigmoid, tanh and relu does."""
        def gradient(g):
            return [(a, self.multiply(g, self.derivative(name, result)))]
        result = self.elementwise(name, [a], gradient)
        return result

    def derivative(self, name, a):
        if name == "relu":  # a step: it has no derivative of its own
            return self.elementwise("relu_derivative", [a])
        return self.elementwise(name + "_derivative", [a],
                                lambda g: [(a, self.multiply(g, self.scale(a)))])

    def matmul(self, a, b, rows, inner, columns):
        """`a` rows x inner, `b` inner x columns; transposed or not makes no difference here."""
        def gradient(g):
            return [(a, self.matmul(g, b, rows, columns, inner)),
                    (b, self.matmul(a, g, inner, rows, columns))]
        return self.call("mm", [a, b], rows * columns, 2 * rows * inner * columns, gradient)

    def slices(self, a, count):
        size = self.sizes[a] // count

        def gradient(i):
            return lambda g: [(a, self.call(f"pad{i}", [g], self.sizes[a]))]
        return [self.call(f"slice{i}", [a], size, gradient=gradient(i)) for i in range(count)]

    def gradients_of(self, loss, wanted):
        """Gradients of `wanted`, added up in the order in which they come."""
        reached = self.reaching(wanted)
        known = {loss: self.call("ones", [loss], self.sizes[loss])}
        for _, _, tensor, _ in reversed(list(self.calls)):
            if tensor not in known or tensor not in self.gradients or tensor not in reached:
                continue
            given = known[tensor] if tensor in wanted else known.pop(tensor)
            for name, gradient in self.given(tensor, given, reached):
                known[name] = self.add(known[name], gradient) if name in known else gradient
        return [known[tensor] for tensor in wanted]

    def given(self, tensor, gradient, reached):
        """(input, gradient) pairs of the inputs that lead to what is wanted; ops for others, which
        are the last that were made for them, are dropped."""
        before = len(self.calls)
        pairs = [pair for pair in self.gradients[tensor](gradient) if pair[0] in reached]
        read = {name for _, name in pairs}
        for i in reversed(range(before, len(self.calls))):
            _, inputs, made, _ = self.calls[i]
            if made in read:
                read.update(inputs)
            else:
                del self.calls[i]
        return pairs

    def reaching(self, wanted):
        reached = set(wanted)
        for _, inputs, tensor, _ in self.calls:
            if not reached.isdisjoint(inputs):
                reached.add(tensor)
        return reached

    def write(self, out, kept):
        """`kept`: tensors that are there when the step ends."""
        last = {}
        for i, (_, inputs, tensor, _) in enumerate(self.calls):
            for name in (*inputs, tensor):
                last[name] = i
        stays = kept.union(self.constants)
        gone = {}
        for name, i in last.items():
            if name not in stays:
                gone.setdefault(i, []).append(name)

        def emit(**row):
            out.write(json.dumps(row, separators=(",", ":"), sort_keys=True) + "\n")

        emit(ANNOTATION="START", INSTRUCTION="ANNOTATE")
        for name in self.constants:
            emit(INSTRUCTION="CONSTANT", NAME=f"x{name}")
            emit(INSTRUCTION="MEMORY", MEMORY=str(4 * self.sizes[name]), NAME=f"x{name}")
        for i, (op, inputs, tensor, flops) in enumerate(self.calls):
            moved = 4 * (self.sizes[tensor] + sum(self.sizes[name] for name in inputs))
            time = 3000 + flops / 10e12 * 1e9 + moved / 500e9 * 1e9
            emit(ARGS=[f"x{name}" for name in inputs], INSTRUCTION="CALL", NAME=op,
                 RESULT=[f"x{tensor}"], TIME=str(int(time)))
            emit(INSTRUCTION="MEMORY", MEMORY=str(4 * self.sizes[tensor]), NAME=f"x{tensor}")
            emit(ALIAS="-1", INSTRUCTION="ALIAS", NAME=f"x{tensor}")
            for name in gone.get(i, ()):
                emit(INSTRUCTION="RELEASE", NAME=f"x{name}")


def lstm(tape, steps, layers, batch=128, units=256, inputs=64):
    """`layers` cells a step and a loss at each; gradients of the weights are kept."""
    widths = [inputs] + [units] * (layers - 1)
    weights = [(tape.constant(width * 4 * units), tape.constant(units * 4 * units))
               for width in widths]
    zeros = tape.constant(batch * units)
    states = [(zeros, zeros) for _ in range(layers)]
    loss = None
    for _ in range(steps):
        x = tape.constant(batch * inputs)
        for layer, (of_input, of_state) in enumerate(weights):
            hidden, cell = states[layer]
            gates = tape.add(tape.matmul(x, of_input, batch, widths[layer], 4 * units),
                             tape.matmul(hidden, of_state, batch, units, 4 * units))
            put, forget, new, out = tape.slices(gates, 4)
            put, forget, out = (tape.function("sigmoid", gate) for gate in (put, forget, out))
            new = tape.function("tanh", new)
            cell = tape.add(tape.multiply(forget, cell), tape.multiply(put, new))
            x = tape.multiply(out, tape.function("tanh", cell))
            states[layer] = x, cell
        loss = x if loss is None else tape.add(loss, x)
    return tape.gradients_of(loss, list(itertools.chain(*weights)))


def gan(tape, unrolled, layers, batch=512, units=256):
    """The generator's step through `unrolled` updates of the discriminator, both of `layers` layers;
    the generator's new weights are kept."""
    shape = batch, units, units
    generator = [tape.constant(units * units) for _ in range(layers)]
    discriminator = [tape.constant(units * units) for _ in range(layers)]
    noise, real = tape.constant(batch * units), tape.constant(batch * units)

    def network(x, weights, function):
        for weight in weights:
            x = tape.function(function, tape.matmul(x, weight, *shape))
        return x

    fake = network(noise, generator, "relu")
    updated = discriminator
    for _ in range(unrolled):
        loss = tape.add(network(real, updated, "tanh"), network(fake, updated, "tanh"))
        gradients = tape.gradients_of(loss, updated)
        updated = [tape.add(weight, tape.scale(gradient))
                   for weight, gradient in zip(updated, gradients)]
    loss = network(fake, updated, "tanh")
    gradients = tape.gradients_of(loss, generator)
    return [tape.add(weight, tape.scale(gradient))
            for weight, gradient in zip(generator, gradients)]


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in ("lstm", "gan"):
        raise SystemExit(__doc__)
    tape = Tape()
    make = {"lstm": lstm, "gan": gan}[sys.argv[1]]
    tape.write(sys.stdout, set(make(tape, int(sys.argv[2]), int(sys.argv[3]))))


if __name__ == "__main__":
    main()
