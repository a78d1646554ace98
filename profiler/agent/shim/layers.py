# SPDX-License-Identifier: MIT
"""Which module is running: paths such as "layer1.0.conv2", from global forward hooks."""
import struct
import weakref

import torch
from _highwater import encode, wire
from _highwater.sharded import local
from torch.nn.parameter import UninitializedTensorMixin

LONGEST_PAUSE = 8  # epochs


def parts_of(module):
    """What it is made of, by the ids of its parameters, buffers and modules."""
    return (*map(id, module._parameters.values()), *map(id, module._buffers.values()),
            *map(id, module._modules.values()))


class Root:
    """A module that no other module's forward calls, and its tree as it was when last learnt."""

    def __init__(self, module, prefix, gone):
        self.weak = weakref.ref(module, gone)
        self.prefix = prefix
        self.names = {}   # id(module) -> path
        self.tree = ()    # (weak reference, what the module is made of)
        self.learnt = -1  # epoch in which that was
        self.stale = True
        self.next = -1    # epoch in which to compare it again
        self.pause = 1    # epochs until then, one or two a step

    def has_changed(self, epoch):
        """Compares the less often the longer nothing has changed. Modules that are new, parameters that
        an optimizer gets and tensors that have gone are noticed without."""
        if self.stale or epoch < self.next:
            return self.stale
        for weak, parts in self.tree:
            module = weak()
            if module is None or parts_of(module) != parts:
                return True
        self.next = epoch + self.pause
        self.pause = min(2 * self.pause, LONGEST_PAUSE)
        return False


class Layers:
    def __init__(self):
        self.ids = {}         # path -> id
        self.types = {}       # path -> type name
        self.stack = []       # (id(module), layer) of the modules that run now
        self.inners = {}      # id(module) -> layer of parts that ran since their tree was learnt
        self.roots = {}       # id(root) -> Root
        self.prefixes = set()
        self.main = None      # the first root with parameters: its paths stay bare
        self.parameters = {}  # id(parameter) -> (weak reference, layer)
        self.strays = set()   # ids of those that no known module has: their layer is "(root)" for now
        self.sharded = []     # (weak reference, layer) of those whose bytes are a local part's
        self.found = False    # a module of such a one, since forgotten by whom it concerns
        self.lazy = []        # (weak reference, layer) of modules that wait for their first input
        self.loss_layer = self.of("(loss)")
        self.optimizer_layer = self.of("(optimizer)")

    def of(self, path, type_name=""):
        """The layer with this path; it and the layers above it are made where needed."""
        id = self.ids.get(path)
        if id is not None:
            return id
        parent = -1
        if not path.startswith("("):
            above = path.rpartition(".")[0]
            parent = self.of(above, self.types.get(above, "")) if above else self.of("(root)")
        id = self.ids[path] = len(self.ids)
        encode.send(wire.TYPE_LAYER, struct.pack("<2q", id, parent) + encode.text(path) +
                    encode.text(type_name or self.types.get(path, "")))
        return id

    def current(self):
        return self.stack[-1][1] if self.stack else self.loss_layer

    def enter(self, module, registry):
        if self.stack and self.stack[0][0] == id(module):
            del self.stack[:]  # an exception ended its last forward
        if not self.stack:
            layer = self.enter_root(module, registry)
        else:
            layer = self.inner(module, registry)
        self.stack.append((id(module), layer))

    def leave(self, module):
        """Pops up to the module: an exception in an inner forward leaves its entry behind."""
        for depth in range(len(self.stack) - 1, -1, -1):
            if self.stack[depth][0] == id(module):
                del self.stack[depth:]
                return

    def inner(self, module, registry):
        layer = self.layer_in_trees(module)
        if layer is None:  # the tree around it may have got it since it was looked at
            root = self.roots.get(self.stack[0][0])
            if root is not None:
                self.learn_again(root, registry)
                layer = self.layer_in_trees(module)
        if layer is None:
            return self.stack[-1][1]  # a module of no known tree: part of its caller
        self.inners[id(module)] = layer
        return layer

    def layer_in_trees(self, module):
        for root in list(self.roots.values()):
            path = root.names.get(id(module))
            if path is not None and root.weak() is not None:
                return self.module_layer(root.prefix, path, module)
        return None

    def module_layer(self, prefix, path, module):
        full = prefix + path if path else (prefix[:-1] or "(root)")
        return self.of(full, type(module).__name__)

    def enter_root(self, module, registry):
        if isinstance(module, torch.nn.modules.loss._Loss):
            return self.loss_layer
        known = self.roots.get(id(module))
        if known is None or known.weak() is not module:
            layer = self.layer_in_trees(module)
            if layer is not None:
                return layer  # a part of a known model that is called by itself
            known = self.add_root(module)
        if known.has_changed(registry.epoch):
            self.learn(module, known, registry)
        return self.module_layer(known.prefix, "", module)

    def add_root(self, module):
        """Its name may be another one's once it has gone: a program may make one at every step."""
        id_, prefix = id(module), self.prefix_for(module)

        def gone(weak):
            self.prefixes.discard(prefix)
            if id_ in self.roots and self.roots[id_].weak is weak:
                del self.roots[id_]
        root = self.roots[id_] = Root(module, prefix, gone)
        return root

    def prefix_for(self, module):
        if (self.main is None or self.main() is None) and next(module.parameters(), None) is not None:
            self.main = weakref.ref(module)
            return ""
        name, n = type(module).__name__, 1
        prefix = name + "."
        while prefix in self.prefixes:
            n += 1
            prefix = "%s#%d." % (name, n)
        self.prefixes.add(prefix)
        return prefix

    def learn(self, module, known, registry):
        """Names, parameters and buffers of a tree of modules."""
        self.inners.clear()
        known.learnt, known.stale = registry.epoch, False
        known.next, known.pause = registry.epoch + 1, 1
        prefix = known.prefix
        known.names, known.tree = {}, []
        for path, inner in module.named_modules():
            known.names[id(inner)] = path
            known.tree.append((self.watched(inner, known.names), parts_of(inner)))
            full = prefix + path if path else (prefix[:-1] or "(root)")
            self.types.setdefault(full, type(inner).__name__)
        for path, inner in module.named_modules():
            own = [p for p in inner._parameters.values() if p is not None]
            own += [b for b in inner._buffers.values() if b is not None]
            if own:
                layer = self.module_layer(prefix, path, inner)
                self.learn_own(own, inner, layer, registry)

    def learn_again(self, root, registry):
        """At most once an epoch."""
        module = root.weak()
        if module is not None and root.learnt != registry.epoch:
            self.learn(module, root, registry)

    def watched(self, module, names):
        """A weak reference; once the module has gone, another one may get its id."""
        id_, inners = id(module), self.inners

        def gone(_):
            names.pop(id_, None)
            inners.pop(id_, None)
        return weakref.ref(module, gone)

    def forget_trees(self):
        """They are learnt again: something they were known by has gone, or modules were not watched for long."""
        for root in list(self.roots.values()):
            root.stale = True

    def learn_own(self, tensors, module, layer, registry):
        for tensor in tensors:
            if not isinstance(tensor, UninitializedTensorMixin):
                self.learn_tensor(tensor, layer, registry)
            elif not self.lazy or self.lazy[-1][0]() is not module:
                self.lazy.append((weakref.ref(module), layer))

    def learn_lazy(self, registry):
        """Lazy modules have got their parameters in the forward that ends now."""
        lazy, self.lazy = self.lazy, []
        for weak, layer in lazy:
            module = weak()
            if module is not None:
                own = [*module._parameters.values(), *module._buffers.values()]
                self.learn_own([each for each in own if each is not None], module, layer, registry)

    def learn_tensor(self, tensor, layer, registry):
        known = self.layer_of_parameter(tensor)
        if known is None or id(tensor) in self.strays:
            self.found = self.found or known is not None
            self.strays.discard(id(tensor))
            self.parameters[id(tensor)] = (weakref.ref(tensor), layer)
            if local(tensor) is not tensor:
                self.sharded.append((weakref.ref(tensor), layer))
        registry.own(tensor, wire.CATEGORY_PARAMETER, self.parameters[id(tensor)][1])  # the first, where it is shared

    def categorize_sharded(self, registry):
        """Gradients of sharded parameters: the capture knows their local parts, which have none."""
        self.sharded = [each for each in self.sharded if each[0]() is not None]
        for weak, layer in self.sharded:
            parameter = weak()
            if parameter is not None and parameter.grad is not None:
                registry.categorize(parameter.grad, wire.CATEGORY_GRADIENT, layer)

    def learn_parameter(self, tensor, registry):
        """One that an optimizer has: it may have come into its module since that was looked at."""
        if self.layer_of_parameter(tensor) is None:
            for root in list(self.roots.values()):
                self.learn_again(root, registry)
        if self.layer_of_parameter(tensor) is None:
            self.learn_tensor(tensor, self.of("(root)"), registry)
            self.strays.add(id(tensor))

    def let_go(self, tensor):
        """No weak reference to the tensor is left; its layer, None where it is no parameter."""
        layer = self.layer_of_parameter(tensor)
        self.parameters.pop(id(tensor), None)
        self.sharded = [each for each in self.sharded if each[0]() is not tensor]
        return layer

    def layer_of_parameter(self, tensor):
        known = self.parameters.get(id(tensor))
        return known[1] if known is not None and known[0]() is tensor else None
