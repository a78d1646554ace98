# SPDX-License-Identifier: MIT
"""Which layer a backward op belongs to: nodes of the autograd graph carry the layer of their op.

The layer lies in the node's own metadata, so that no node is held (a node holds what it saved).
"""
import weakref

KEY = "highwater_layer"


def mark(tensor, layer):
    """The node that made the tensor gets the layer, unless it has one."""
    node = tensor.grad_fn
    if node is not None:
        node.metadata.setdefault(KEY, layer)


class Gradients:
    def __init__(self, layers):
        self.layers = layers
        self.depth = 0
        self.current = layers.loss_layer
        self.recent = ()  # (weak reference, layer) of the last op's outputs

    def remember(self, outputs, layer):
        """grad_fn is set only after the op has left the dispatch mode: look at it later."""
        self.recent = [(weakref.ref(tensor), layer) for tensor in outputs]

    def settle(self):
        for weak, layer in self.recent:
            tensor = weak()
            if tensor is not None:
                mark(tensor, layer)
        self.recent = ()

    def watch(self, roots):
        """Before a backward: a hook on every node below the roots says whose turn it is."""
        self.settle()
        handles = []
        pending = []
        for root in roots:
            node = getattr(root, "grad_fn", None) or getattr(root, "node", None)
            if node is not None:
                pending.append((node, self.layers.loss_layer))
        seen = {node for node, _ in pending}
        while pending:
            node, above = pending.pop()
            layer = self.layer_of(node, above)
            try:
                handles.append(node.register_prehook(self.hook(layer)))
            except (AttributeError, RuntimeError):
                pass  # a Python function of an old version: its ops go to the node before it
            for below, _ in node.next_functions:
                if below is not None and below not in seen:
                    seen.add(below)
                    pending.append((below, layer))
        return handles

    def layer_of(self, node, above):
        variable = getattr(node, "variable", None)
        if variable is not None:
            layer = self.layers.layer_of_parameter(variable)
            return above if layer is None else layer
        return node.metadata.get(KEY, above)

    def hook(self, layer):
        def enter(*_):
            self.current = layer
        return enter
