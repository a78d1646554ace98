# SPDX-License-Identifier: MIT
"""Where a backward op belongs to: nodes of the autograd graph carry the layer and the call stack of their op.

Both lie in the node's own metadata, so that no node is held (a node holds what it saved).
"""
import weakref

from _highwater.stacks import NO_STACK

KEY = "highwater_origin"


def mark(tensor, layer, stack):
    """The node that made the tensor gets them, unless it has some."""
    node = tensor.grad_fn
    if node is not None:
        node.metadata.setdefault(KEY, (layer, stack))


class Gradients:
    def __init__(self, layers):
        self.layers = layers
        self.depth = 0
        self.current = layers.loss_layer
        self.stack = NO_STACK
        self.recent = ()  # (weak reference, layer, stack) of the last op's outputs

    def remember(self, outputs, layer, stack):
        """grad_fn is set only after the op has left the dispatch mode: look at it later."""
        self.recent = [(weakref.ref(tensor), layer, stack) for tensor in outputs]

    def settle(self):
        for weak, layer, stack in self.recent:
            tensor = weak()
            if tensor is not None:
                mark(tensor, layer, stack)
        self.recent = ()

    def watch(self, roots):
        """Before a backward: a hook on every node below the roots says whose turn it is."""
        self.settle()
        handles = []
        pending = []
        for root in roots:
            node = getattr(root, "grad_fn", None) or getattr(root, "node", None)
            if node is not None:
                pending.append((node, (self.layers.loss_layer, NO_STACK)))
        seen = {node for node, _ in pending}
        while pending:
            node, above = pending.pop()
            origin = self.origin_of(node, above)
            try:
                handles.append(node.register_prehook(self.hook(*origin)))
            except (AttributeError, RuntimeError):
                pass  # a Python function of an old version: its ops go to the node before it
            for below, _ in node.next_functions:
                if below is not None and below not in seen:
                    seen.add(below)
                    pending.append((below, origin))
        return handles

    def origin_of(self, node, above):
        variable = getattr(node, "variable", None)
        if variable is not None:
            layer = self.layers.layer_of_parameter(variable)
            return above if layer is None else (layer, above[1])
        return node.metadata.get(KEY, above)

    def hook(self, layer, stack):
        def enter(*_):
            self.current, self.stack = layer, stack
        return enter
