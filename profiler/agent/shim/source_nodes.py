# SPDX-License-Identifier: MIT
"""Where in the program the kernels that torch.compile has made come from: layers and lines, for a recording.

The compiler is given the graph that dynamo has traced. Its nodes tell the module that was running and the lines that led
to them, and the compiler's output code names the nodes that it has made a kernel of."""
import functools
import os
import re

import torch
from _highwater.patches import Imports

FRAME = re.compile(r'^\s*File "(.*?)", line (\d+), in (\S+)', re.MULTILINE)
TORCH = os.path.dirname(torch.__file__) + os.sep
MOST = 8  # frames of a place


def layer_of(stack):
    """Path and class of the innermost module, "layers.0.linear" and "Linear"; the path is empty for the outermost. None:
    there is none."""
    if not stack:
        return None
    path, kind = list(stack.values())[-1]
    path = re.sub(r"^L\['\w+'\]|^L__\w+?__|^self", "", path)
    path = re.sub(r"\._modules\['?(\w+)'?\]|\['?(\w+)'?\]", lambda found: "." + (found[1] or found[2]), path)
    return path.strip("."), getattr(kind, "__name__", str(kind).rpartition(".")[2])


@functools.lru_cache(maxsize=None)
def framed(file, line, name):
    """A function whose frame says that it is `name`, in that line of that file: it calls the next one of a list."""
    source = "\n" * (line - 1) + "def %s(following, call, arguments, named): return following[0](following[1:], call, arguments, named) " \
        "if following else call(*arguments, **named)" % name
    made = {}
    exec(compile(source, file, "exec"), made)
    return made[name]


class SourceNodes:
    """`enter(layer)`, its path and class, and `leave()` hear of the module that a kernel is part of, while it runs."""

    def __init__(self, patches, enter, leave):
        self.enter, self.leave = enter, leave
        self.graphs = []   # of each: name of a node to its place, in their order
        self.last = None   # graph and node of the kernel before
        self.known = {}    # a place to its number
        self.places = []   # layer, functions
        Imports(patches, {"torch._inductor.compile_fx": lambda module: patches.stand_for(module, "compile_fx", self.note)})

    def note(self, graph, *_, **__):
        try:
            self.read(graph)
        except Exception:  # of a form that is not known: its kernels have no places
            pass

    def read(self, graph):
        nodes = {}
        for node in getattr(getattr(graph, "graph", None), "nodes", ()):
            trace = node.meta.get("stack_trace")
            if trace or node.meta.get("nn_module_stack"):
                frames = [(file, int(line), name) for file, line, name in FRAME.findall(trace or "")
                          if not file.startswith(TORCH) and name.isidentifier()]
                nodes[node.name] = (layer_of(node.meta.get("nn_module_stack")), tuple(frames[-MOST:]))
        if nodes:
            self.graphs.append(nodes)

    def begin(self):
        """Of another module's kernels."""
        self.last = None

    def number(self, names, kernel):
        """Of a place, for call(); None: it is not known. A fused kernel that names no nodes comes after the last that did,
        and in a backward from where that one came."""
        found = self.find(names) if names else self.after(kernel)
        if found is None:
            return None
        self.last = found
        nodes, name = found
        place = nodes[name]
        if place not in self.known:
            layer, frames = place
            self.known[place] = len(self.places)
            self.places.append((layer, [framed(*each) for each in frames]))
        return self.known[place]

    def find(self, names):
        """The graph that has most of these nodes, and the last of them; of several the latest one."""
        best = max(reversed(self.graphs), key=lambda nodes: sum(name in nodes for name in names), default={})
        return next(((best, name) for name in reversed(names) if name in best), None)

    def after(self, kernel):
        if self.last is None:
            return (self.graphs[-1], next(iter(self.graphs[-1]))) if self.graphs else None
        nodes, name = self.last
        following = list(nodes)[list(nodes).index(name) + 1:]
        return (nodes, following[0]) if following and "backward" not in kernel else self.last

    def call(self, number, call, arguments, named):
        layer, functions = self.places[number]
        entered = layer is not None and self.enter(*layer)
        try:
            if functions:
                return functions[0](functions[1:], call, arguments, named)
            return call(*arguments, **named)
        finally:
            if entered:
                self.leave()
