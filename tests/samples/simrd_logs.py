# SPDX-License-Identifier: MIT
"""Training steps of small networks as logs of the DTR simulator: forward and backward pass, one instruction a line."""
import json

FLOPS_PER_NS, BYTES_PER_NS, LAUNCH_NS = 4000, 240, 5000  # of the order of a GPU; not measured


class Log:
    """Instructions with every name's RELEASE after its last use."""

    def __init__(self):
        self.constants, self.lines, self.names, self.bytes, self.kept = [], [], 0, {}, set()

    def name(self, size):
        self.names += 1
        name = f"t{self.names}"
        self.bytes[name] = size
        return name

    def constant(self, size):
        name = self.name(size)
        self.constants += [{"INSTRUCTION": "CONSTANT", "NAME": name}, self.memory(name)]
        self.kept.add(name)
        return name

    def memory(self, name):
        return {"INSTRUCTION": "MEMORY", "NAME": name, "MEMORY": str(self.bytes[name])}

    def copy(self, source):
        """Another name of the same tensor, as autograd holds what it saves."""
        name = self.name(self.bytes[source])
        self.lines.append({"INSTRUCTION": "COPY", "DST": name, "SRC": source})
        return name

    def time(self, arguments, sizes, flops):
        moved = sum(self.bytes[name] for name in arguments) + sum(sizes)
        return str(LAUNCH_NS + max(flops // FLOPS_PER_NS, moved // BYTES_PER_NS))

    def call(self, op, arguments, sizes, flops=0, view=False):
        """The results' names; a view is one of the first argument."""
        names = [self.name(size) for size in sizes]
        time = str(LAUNCH_NS // 2) if view else self.time(arguments, sizes, flops)
        self.lines.append({"INSTRUCTION": "CALL", "NAME": op, "ARGS": arguments, "RESULT": names, "TIME": time})
        for name in names:
            self.lines += [self.memory(name), {"INSTRUCTION": "ALIAS", "NAME": name, "ALIAS": "0" if view else "-1"}]
        return names

    def mutate(self, op, arguments):
        """Writes the first argument in place."""
        time = self.time(arguments, [self.bytes[arguments[0]]], 0)
        self.lines.append({"INSTRUCTION": "MUTATE", "NAME": op, "ARGS": arguments, "MUTATE": [0], "TIME": time})

    def text(self):
        last = {}
        for number, line in enumerate(self.lines):
            for name in [*line.get("ARGS", []), *line.get("RESULT", []), line.get("SRC"), line.get("DST")]:
                last[name] = number
        ends = {}
        for name in self.bytes:
            if name not in self.kept and name in last:
                # The sizes of results follow their op.
                number = last[name] + 2 * len(self.lines[last[name]].get("RESULT", []))
                ends.setdefault(number, []).append(name)
        text = [json.dumps(line) for line in ({"INSTRUCTION": "ANNOTATE", "ANNOTATION": "START"}, *self.constants)]
        for number, line in enumerate(self.lines):
            text.append(json.dumps(line))
            text += [json.dumps({"INSTRUCTION": "RELEASE", "NAME": name}) for name in ends.get(number, [])]
        return "\n".join(text) + "\n"


class Network(Log):
    """Ops with their gradient ops, which run in reverse order."""

    def __init__(self):
        super().__init__()
        self.tape, self.gradients, self.weights = [], {}, set()

    def weight(self, *shape):
        name = self.constant(4 * product(shape))
        self.weights.add(name)
        return name

    def apply(self, op, inputs, sizes, flops=0, saved=(), keeps=False, backward=None, wanted=None, view=False):
        """Runs an op. Its gradient op reads the saved inputs and, if the op keeps them, its results."""
        results = self.call(op, inputs, sizes, flops, view)
        held = [self.copy(inputs[i]) for i in saved] + ([self.copy(results[0])] if keeps else [])
        wanted = inputs if wanted is None else wanted
        self.tape.append((backward or op + "_backward", results, wanted, held, flops, view))
        return results if len(results) > 1 else results[0]

    def rectify(self, x):
        """ReLU in place."""
        self.mutate("relu_", [x])
        self.tape.append(("threshold_backward", [x], [x], [self.copy(x)], 0, False))
        return x

    def receive(self, name, gradient):
        if name in self.gradients:
            both = [self.gradients.pop(name), gradient]
            gradient, = self.call("add", both, [self.bytes[name]])
        self.gradients[name] = gradient

    def backward(self, loss):
        self.receive(loss, self.call("ones_like", [loss], [self.bytes[loss]])[0])
        for op, results, wanted, held, flops, view in reversed(self.tape):
            given = [self.gradients.pop(name) for name in results if name in self.gradients]
            if not given:
                continue
            made = self.call(op, given + held, [self.bytes[name] for name in wanted], 2 * flops, view)
            for name, gradient in zip(wanted, made):
                self.receive(name, gradient)
        self.kept |= {loss} | {self.gradients[name] for name in self.weights if name in self.gradients}
        return self


def product(factors):
    result = 1
    for factor in factors:
        result *= factor
    return result


class Images(Network):
    """What networks over images are made of; an image is (name, channels, pixels a side)."""

    def __init__(self, batch):
        super().__init__()
        self.batch = batch

    def size(self, channels, side):
        return 4 * self.batch * channels * side * side

    def convolution(self, image, channels, kernel=3, stride=1):
        x, before, side = image
        side //= stride
        weight = self.weight(channels, before, kernel, kernel)
        flops = 2 * self.batch * side * side * channels * before * kernel * kernel
        return self.apply("cudnn_convolution", [x, weight], [self.size(channels, side)], flops, (0, 1)), channels, side

    def normalize(self, image):
        x, channels, side = image
        y, *statistics = self.apply("cudnn_batch_norm", [x, self.weight(channels), self.weight(channels)],
                                    [self.size(channels, side), 4 * channels, 4 * channels], 0, (0, 1))
        return y, channels, side

    def relu(self, image):
        x, channels, side = image
        return self.apply("relu", [x], [self.bytes[x]], keeps=True, backward="threshold_backward"), channels, side


def resnet32():
    """A residual network of 32 layers on small images (He et al. 2016, section 4.2), batch 512."""
    network = Images(512)
    image = (network.constant(network.size(3, 32)), 3, 32)
    image = network.relu(network.normalize(network.convolution(image, 16)))
    for channels in (16, 32, 64):
        for block in range(5):
            stride = 2 if channels > 16 and block == 0 else 1
            inner = network.relu(network.normalize(network.convolution(image, channels, stride=stride)))
            inner = network.normalize(network.convolution(inner, channels))
            shortcut = image[0]
            if stride > 1:  # every second pixel, and channels of zeros
                part = network.apply("slice", [shortcut], [network.bytes[shortcut] // 4])
                shortcut = network.apply("constant_pad_nd", [part], [2 * network.bytes[part]])
            total = network.apply("add", [inner[0], shortcut], [network.bytes[shortcut]])
            image = network.relu((total, channels, inner[2]))
    pooled = network.apply("avg_pool2d", [image[0]], [network.size(64, 1)], saved=(0,))
    flat = network.apply("view", [pooled], [network.bytes[pooled]], backward="view", view=True)
    scores = network.apply("addmm", [flat, network.weight(64, 10), network.weight(10)], [4 * 512 * 10], 2 * 512 * 640, (0, 1))
    logarithms = network.apply("_log_softmax", [scores], [network.bytes[scores]], keeps=True)
    loss = network.apply("nll_loss", [logarithms], [4], saved=(0,))
    return network.backward(loss)


def unet():
    """A U-Net with upsampling (Ronneberger et al. 2015), batch 4, images of 256 pixels a side."""
    network = Images(4)

    def twice(image, channels):
        for _ in range(2):
            image = network.normalize(network.convolution(image, channels))
            image = (network.rectify(image[0]), *image[1:])
        return image

    image = twice((network.constant(network.size(3, 256)), 3, 256), 32)
    skipped = []
    for channels in (64, 128, 256, 256):
        skipped.append(image)
        side = image[2] // 2
        size = network.size(image[1], side)
        pooled, _ = network.apply("max_pool2d_with_indices", [image[0]], [size, 2 * size], saved=(0,))
        image = twice((pooled, image[1], side), channels)
    for channels in (128, 64, 32, 32):
        skip = skipped.pop()
        larger = network.apply("upsample_bilinear2d", [image[0]], [network.size(image[1], skip[2])])
        joined = network.apply("_cat", [skip[0], larger], [network.bytes[skip[0]] + network.bytes[larger]])
        image = twice((joined, skip[1] + image[1], skip[2]), channels)
    image = network.convolution(image, 1, kernel=1)
    loss = network.apply("binary_cross_entropy_with_logits", [image[0]], [4], saved=(0,))
    return network.backward(loss)


class Sequences(Network):
    """What networks over rows of numbers are made of."""

    def linear(self, x, rows, inputs, outputs):
        weight, bias = self.weight(outputs, inputs), self.weight(outputs)
        turned = self.apply("t", [weight], [self.bytes[weight]], backward="t", view=True)
        flops = 2 * rows * inputs * outputs
        return self.apply("addmm", [x, turned, bias], [4 * rows * outputs], flops, (0, 1))

    def map(self, op, *inputs, keeps=False):
        """Element by element; the gradient reads the result, or the inputs."""
        saved = () if keeps or op == "add" else range(len(inputs))
        return self.apply(op, list(inputs), [self.bytes[inputs[0]]], saved=saved, keeps=keeps)

    def view(self, x):
        return self.apply("view", [x], [self.bytes[x]], backward="view", view=True)


def transformer():
    """Four layers of a transformer's encoder with dropout, 32 sequences of 64, 256 wide."""
    batch, length, width, heads = 32, 64, 256, 4
    rows = batch * length
    network = Sequences()

    def dropout(x):
        y, _ = network.apply("_fused_dropout", [x], [network.bytes[x], network.bytes[x] // 4], backward="_masked_scale")
        return y

    def normalize(x):
        y, *_ = network.apply("native_layer_norm", [x, network.weight(width), network.weight(width)],
                              [network.bytes[x], 4 * rows, 4 * rows], saved=(0, 1))
        return y

    def attention(x):
        query, key, value = (network.view(network.linear(x, rows, width, width)) for _ in range(3))
        flops = 2 * rows * length * width
        scores = network.apply("bmm", [query, key], [4 * heads * rows * length], flops, (0, 1))
        shares = dropout(network.map("_softmax", scores, keeps=True))
        context = network.apply("bmm", [shares, value], [4 * rows * width], flops, (0, 1))
        return network.linear(network.view(context), rows, width, width)

    x = network.constant(4 * rows * width)
    for _ in range(4):
        x = normalize(network.map("add", x, dropout(attention(x))))
        inner = dropout(network.map("relu", network.linear(x, rows, width, 4 * width), keeps=True))
        x = normalize(network.map("add", x, dropout(network.linear(inner, rows, 4 * width, width))))
    logarithms = network.map("_log_softmax", network.linear(x, rows, width, 1000), keeps=True)
    return network.backward(network.apply("nll_loss", [logarithms], [4], saved=(0,)))


def treelstm():
    """An LSTM over a binary tree of 63 nodes (Tai et al. 2015), 256 trees at once, 16 units."""
    batch, units = 256, 16
    network = Sequences()
    size = 4 * batch * units
    words, table = network.constant(8 * batch), network.weight(100, units)
    weights = {name: (network.weight(units, count * units), network.weight(count * units))
               for name, count in (("x", 3), ("h", 3), ("f", 1))}

    def product_with(name, x):
        weight, bias = weights[name]
        turned = network.apply("t", [weight], [network.bytes[weight]], backward="t", view=True)
        outputs = network.bytes[bias] // 4
        return network.apply("addmm", [x, turned, bias], [4 * batch * outputs], 2 * batch * units * outputs, (0, 1))

    def gates(x):
        parts = network.apply("split", [x], [size] * 3, backward="split_backward", view=True)
        # The gradient of a split is concatenated.
        network.tape[-1] = (*network.tape[-1][:5], False)
        return [network.map(op, part, keeps=True) for op, part in zip(("sigmoid", "sigmoid", "tanh"), parts)]

    def node(depth):
        if depth == 0:
            word = network.apply("embedding", [table, words], [size], saved=(1,), wanted=[table])
            entry, exit_, update = gates(product_with("x", word))
            cell = network.map("mul", entry, update)
        else:
            (first_cell, first), (second_cell, second) = node(depth - 1), node(depth - 1)
            entry, exit_, update = gates(product_with("h", network.map("add", first, second)))
            cell = network.map("mul", entry, update)
            for child_cell, child in ((first_cell, first), (second_cell, second)):
                forget = network.map("sigmoid", product_with("f", child), keeps=True)
                cell = network.map("add", cell, network.map("mul", forget, child_cell))
        return cell, network.map("mul", exit_, network.map("tanh", cell, keeps=True))

    _, root = node(5)
    return network.backward(network.apply("sum", [root], [4]))


LOGS = {"resnet32": resnet32, "transformer": transformer, "treelstm": treelstm, "unet": unet}
