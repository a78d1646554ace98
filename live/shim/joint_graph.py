# SPDX-License-Identifier: MIT
"""A joint graph of torch.compile (forward and backward of a region, torch/_functorch/partitioners.py) as a planner
reads it (live/compile/traced_step.h), and what the planner keeps as what the partitioner is to save.

What the region is given is there anyway, and counts as 0; gradients that come to the backward count from its begin on."""
import json
import operator
import sys

import torch

aten = torch.ops.aten
VIEWS = (aten.reshape.default, aten._unsafe_view.default, aten.alias.default, aten.detach.default)
# Of a processor and its memory; planners ask for ratios only.
FLOPS, BYTES = 20e9, 10e9  # a second
UNKNOWN_SIZE = 4096  # of a dimension without a hint


def number(size):
    if isinstance(size, int):
        return size
    hint = getattr(getattr(size, "node", None), "hint", None)
    return UNKNOWN_SIZE if hint is None else int(hint)


def bytes_of(value):
    if isinstance(value, torch.Tensor):
        count = value.element_size()
        for size in value.shape:
            count *= number(size)
        return count
    return sum(map(bytes_of, value)) if isinstance(value, (list, tuple)) else 0


def nodes_in(value):
    """In nested lists of a node's arguments."""
    found = []
    torch.fx.node.map_arg(value, lambda node: found.append(node))
    return found


class JointGraph:
    """`saved`: the partitioner's own choice."""

    def __init__(self, partitioners, graph, info, saved):
        self.kinds = partitioners.get_default_op_list()
        self.info, self.saved = info, saved
        output = next(node for node in reversed(graph.nodes) if node.op == "output")
        backward = set(info.required_bw_nodes)
        self.outputs = nodes_in(output.args)
        needed = self.reached(self.outputs, lambda node: node.all_input_nodes)
        self.nodes = [node for node in graph.nodes if node in needed and self.has_bytes(node)]
        self.forward = [node for node in self.nodes if node not in backward]
        self.backward = [node for node in self.nodes if node in backward]
        self.at = {node: i for i, node in enumerate(self.nodes)}
        self.roots = {}
        for node in self.nodes:
            self.roots[node] = self.root(node)

    @staticmethod
    def reached(from_nodes, following):
        seen, stack = set(), list(from_nodes)
        while stack:
            node = stack.pop()
            if node not in seen:
                seen.add(node)
                stack += following(node)
        return seen

    @staticmethod
    def has_bytes(node):
        """Not a size, or an object."""
        value = node.meta.get("val")
        return isinstance(value, torch.Tensor) or isinstance(value, (list, tuple)) and any(
            isinstance(each, torch.Tensor) for each in value)

    # Kinds of nodes.

    def is_view(self, node):
        return node.op == "call_function" and (node.target in VIEWS or self.kinds.is_view(node))

    @staticmethod
    def is_element(node):
        """One of the results of an op."""
        return node.op == "call_function" and node.target is operator.getitem and not isinstance(
            node.args[0].meta.get("val"), torch.Tensor)

    def is_fusible(self, node):
        return node.op == "call_function" and (self.is_view(node) or self.is_element(node) or self.kinds.is_fusible(
            node) or "inductor_random" in str(node.target) or "inductor_lookup" in str(node.target))

    def runs_once(self, node):
        """Another draw, a collective, an effect, or what the program has asked to be kept."""
        if self.is_element(node):
            return self.runs_once(node.args[0])
        name = str(node.target)
        return node.op == "call_function" and (
            "seed" in name or "c10d" in name or str(node.meta.get("recompute")).endswith("MUST_SAVE") or
            (self.kinds.is_random(node) and "inductor_random" not in name) or node.is_impure())

    def root(self, node):
        """The node that makes its storage, and which of that node's results it is."""
        if self.is_element(node):
            return node.args[0], node.args[1]
        if self.is_view(node):
            viewed = [each for each in node.all_input_nodes if each in self.roots]
            if viewed:
                return self.roots[viewed[0]]
        return node, 0

    # For the planner.

    def storages(self):
        """Of each node that makes some: their bytes."""
        made = {}
        for node in self.nodes:
            if self.roots[node] != (node, 0) and not (self.is_many(node) and node.op == "call_function"):
                continue
            values = node.meta["val"] if self.is_many(node) else [node.meta["val"]]
            made[node] = list(map(bytes_of, values))
        return made

    @staticmethod
    def is_many(node):
        return not isinstance(node.meta["val"], torch.Tensor)

    def nanoseconds(self, node):
        if self.is_view(node) or self.is_element(node):
            return 0
        values = lambda read: read.meta.get("val")
        moved = bytes_of(values(node)) + sum(bytes_of(values(read)) for read in node.all_input_nodes)
        flops = 0
        counter = sys.modules.get("torch.utils.flop_counter")  # inductor has it; to import it may print a warning
        count = getattr(counter, "flop_registry", {}).get(getattr(node.target, "_overloadpacket", None))
        if count is not None:
            try:
                arguments, named = torch.fx.node.map_aggregate(
                    (node.args, node.kwargs), lambda each: values(each) if isinstance(each, torch.fx.Node) else each)
                flops = number(count(*arguments, **named, out_val=values(node)))
            except Exception:  # of a form that the table does not know
                flops = 0
        return int(1e9 * max(flops / FLOPS, moved / BYTES))

    def given_bytes(self):
        """Of parameters and all else that the forward is given."""
        return sum(bytes_of(node.meta["val"]) for node in self.forward if node.op != "call_function")

    def saved_bytes(self):
        """Of what the compiler would keep, without what it is given."""
        roots = {self.roots[node] for node in self.saved if node in self.roots}
        return sum(bytes_of(node.meta["val"]) if not self.is_many(node) else bytes_of(node.meta["val"][k])
                   for node, k in roots if node.op == "call_function")

    def text(self, live, most_kept):
        """JSON. `live`: bytes that are there besides, while the region runs; `most_kept`: bytes that its forward may keep
        for the backward, in place of a budget for all that it takes; None: it has the budget to itself."""
        made = self.storages()
        storages, number_of = [], {}
        tensors, tensor_of = [], {}

        def add_storage(root, size):
            number_of[root] = len(storages)
            storages.append(size)

        def tensor(node):
            if node not in tensor_of:
                tensor_of[node] = len(tensors)
                tensors.append([number_of[self.roots[node]], "", [], [], 0])
            return tensor_of[node]

        for node, sizes in made.items():
            for k, size in enumerate(sizes):
                inside = node.op == "call_function" or "tangents" in str(node.target)
                add_storage((node, k), size if inside else 0)
        last = {}
        for node in self.forward + self.backward:  # the compiler may have them in another order
            for read in [node, *node.all_input_nodes]:
                if read in self.roots:
                    last[self.roots[read]] = node
        stays = {self.roots[node] for node in self.outputs if node in self.roots}
        stays.update((node, 0) for node in self.nodes if node.op != "call_function" and "tangents" not in str(node.target))
        ops, events, first_backward = [], [], None
        in_backward = set(self.backward)
        for node in self.forward + self.backward:
            if node.op != "call_function":
                events.append(["constant", number_of[self.roots[node]]])
            elif not self.is_element(node):
                if node in in_backward and first_backward is None:
                    first_backward = len(ops)
                events.append(["op", len(ops)])
                ops.append(self.op(node, made, number_of, tensors, tensor_of, tensor))
            gone = {self.roots[read] for read in [node, *node.all_input_nodes] if read in self.roots}
            for root in sorted(gone, key=number_of.get):
                if last[root] is node and root not in stays and (self.roots[node] != root or made.get(node)):
                    events.append(["release", number_of[root]])
        self.number_of = number_of
        kept = sorted({number_of[self.roots[node]] for node in self.saved if node in self.roots})
        return json.dumps({
            "ops": ops, "layers": [], "storages": storages, "tensors": tensors, "events": events,
            "finals": sorted({tensor_of[node] for node in self.outputs if node in tensor_of}), "untouched": live,
            "backward": first_backward, "kept": kept, "most_kept": most_kept})

    def op(self, node, made, number_of, tensors, tensor_of, tensor):
        inputs = []
        for read in node.all_input_nodes:
            if read in self.roots and (read not in made or not self.is_many(read)):
                inputs.append([tensor(read), 0])
        if self.is_view(node) or self.roots[node] != (node, 0):
            outputs = [[tensor(node), 0]]
        elif self.is_many(node):
            elements = {user.args[1]: user for user in node.users if user in self.roots and self.is_element(user)}
            outputs = []
            for k in range(len(made[node])):
                tensors.append([number_of[(node, k)], "", [], [], 0])
                if k in elements:
                    tensor_of[elements[k]] = len(tensors) - 1
                outputs.append([len(tensors) - 1, 1])
        else:
            outputs = [[tensor(node), 1]]
        return {"name": str(node.target), "random": False, "once": self.runs_once(node), "fusible": self.is_fusible(node),
                "inputs": inputs, "writes": [], "outputs": outputs, "ns": self.nanoseconds(node), "workspace": 0}

    # From the planner.

    def to_save(self, kept):
        """What the partitioner is to save, where these storages (text()) are kept: the frontier of what the backward
        makes again, as nodes, and the sizes and objects that the partitioner saves itself."""
        kept_roots = {root for root, number in self.number_of.items() if number in kept}
        backward = set(self.backward)
        wanted = [read for node in self.info.required_bw_nodes for read in node.all_input_nodes if read not in backward]
        saved, seen, stack = [], set(), wanted
        while stack:
            node = stack.pop()
            if node in seen or node not in self.roots:
                continue
            seen.add(node)
            own = self.roots[node][0] is node or self.is_element(node)
            stays = node.op != "call_function" or own and (self.roots[node] in kept_roots or self.runs_once(node))
            if stays and not self.is_many(node):
                saved.append(node)
            else:
                stack += node.all_input_nodes
        own = [node for node in self.saved if node not in self.roots]
        return sorted(saved, key=self.at.get) + own
