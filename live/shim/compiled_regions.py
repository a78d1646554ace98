# SPDX-License-Identifier: MIT
"""Within a budget, what torch.compile keeps of a region's forward for its backward is a planner's choice.

The partitioner asks choose_saved_values_set() (torch/_functorch/partitioners.py, from torch 2.4 on) once for each joint
graph: this answers in its place where the compiler's own choice would not fit, and the compiler does the rest. The
planner runs beside the program, which waits for it as it waits for the compiler.

Not all is known when a region is compiled. A region that is given nearly all that is trained has no others beside it: it
gets the budget without what is there, what an optimizer's first step will leave, and gradients that may still be there.
Of others it is not known yet how many there are and how often they are called: they keep nothing at first. The first
whole step after that shows what is really there, and once more they are compiled, with what room there is."""
import ctypes
import functools
import json
import os
import sys
import time

from _highwater import library, wire
from _highwater.joint_graph import JointGraph
from _highwater.patches import Imports

PATIENCE = 60     # seconds that a planner has
MOST_TIMES = 4    # that regions are compiled again
MARGIN = 0.005    # of the budget: what a compiler's buffers take beyond those of the graph
SLACK = 0.01      # of the budget: less than that is not worth another compilation
NEARLY_ALL = 0.9  # of what is trained: a region that is given as much has no others beside it


def to_come(optimizers):
    """Bytes of what is trained, and of what comes to stay in its first step: states of optimizers (by their options)
    and gradients."""
    trained = coming = 0
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            states = 2 if "betas" in group else 1 if group.get("momentum") or "lr_decay" in group else 0
            for parameter in group["params"]:
                size = parameter.numel() * parameter.element_size()
                trained += size
                coming += (0 if parameter in optimizer.state else states * size) + (size if parameter.grad is None else 0)
    return trained, coming


class Region:
    """`beside`: bytes that were planned for beside it; `answer`: the planner's."""

    def __init__(self, beside, answer):
        self.beside, self.answer = beside, answer
        self.lacks = answer["own_kept_bytes"] - answer["kept_bytes"]  # that the compiler would keep, too


class CompiledRegions:
    """`prefix`: begin of the names of files to and from planners. `find_optimizers()`: those that there are."""

    def __init__(self, patches, prefix, find_optimizers, remark):
        self.patches, self.find_optimizers, self.remark = patches, find_optimizers, remark
        self.prefix = os.fsdecode(prefix)
        self.config = None
        self.asked = 0
        self.times = 0       # that all were compiled again
        self.regions = []    # that were planned
        self.alone = False   # the first one has no others beside it
        self.planned = False  # one was in this step
        self.found = []      # bytes beside each when it ran in this step
        self.known = None    # bytes beside a region that runs alone, as they were seen to be
        self.share = 0.0     # of what its compiler would keep, that a region with others may
        self.window = wire.OpWindow()
        Imports(patches, {"torch._functorch.config": self.config_came,
                          "torch._functorch.partitioners": self.partitioners_came})

    def config_came(self, config):
        """The compiler's cache must not give out what was made for another budget: this is part of its key."""
        self.config = config
        if hasattr(config, "memory_budget_pareto_dir"):
            config.memory_budget_pareto_dir = "highwater:%d:%d" % (library.hw_cap(), self.times)

    def partitioners_came(self, partitioners):
        original = getattr(partitioners, "choose_saved_values_set", None)
        if original is None or not hasattr(partitioners, "get_default_op_list"):
            return

        @functools.wraps(original)
        def choose_saved_values_set(joint_graph, node_info, *arguments, **named):
            saved = original(joint_graph, node_info, *arguments, **named)
            try:
                return self.choose(JointGraph(partitioners, joint_graph, node_info, saved))
            except Exception as error:
                self.remark("a region of torch.compile stays as the compiler has it: %r" % error)
                return saved

        self.patches.set(partitioners, "choose_saved_values_set", choose_saved_values_set)

    # What a region keeps.

    def live(self):
        library.hw_begin(ctypes.byref(self.window))
        return self.window.live_before

    def choose(self, graph):
        if not graph.backward or not graph.forward:
            return graph.saved
        trained, coming = to_come(self.find_optimizers())
        self.alone = not self.regions and trained > 0 and graph.given_bytes() >= NEARLY_ALL * trained
        beside = self.live() + coming if self.known is None else self.known
        most_kept = None if self.alone else int(self.share * graph.saved_bytes())
        answer = self.ask(graph.text(beside + int(MARGIN * library.hw_cap()), most_kept))
        if "why" in answer:
            self.remark("a region of torch.compile stays as the compiler has it: " + answer["why"])
            return graph.saved
        self.regions.append(Region(beside, answer))
        self.planned = True
        if answer["own"]:
            return graph.saved
        self.remark(self.told(answer))
        return graph.to_save(set(answer["kept"]))

    def told(self, answer):
        time_of_it = "%+.1f %% of its time" % (100 * answer["extra"])
        if not self.alone:
            return "regions of torch.compile keep less for their backward: %d %% of what the compiler would, for %s" % (
                100 * answer["kept_bytes"] / max(answer["own_kept_bytes"], 1), time_of_it)
        return "a region of torch.compile keeps less for its backward: peak %.2f MB instead of %.2f MB, %s%s" % (
            answer["peak_bytes"] / 1e6, answer["own_peak_bytes"] / 1e6, time_of_it,
            "" if answer["within"] else "; more may come to stay beside it than there is room for")

    def ask(self, text):
        name = "%s.%d" % (self.prefix, self.asked)
        self.asked += 1
        with open(name + ".part", "w") as file:
            file.write(text)
        os.rename(name + ".part", name + wire.LIVE_REGION)
        kept, deadline = name + wire.LIVE_ANSWER, time.monotonic() + PATIENCE
        while not os.path.exists(kept):
            if time.monotonic() > deadline or library.hw_broken():
                return {"why": "no planner answered"}
            time.sleep(0.02)
        with open(kept) as file:
            answer = json.load(file)
        os.remove(kept)
        return answer

    # What is really there.

    def entered(self):
        """A region's forward begins."""
        if self.regions:
            self.found.append(self.live())

    def step_ended(self, peak):
        """`peak`: of its live bytes."""
        found, self.found = self.found, []
        planned, self.planned = self.planned, False
        if planned or not found or self.times == MOST_TIMES:
            return
        if self.alone and len(found) == len(self.regions) == 1:
            self.look_at_the_only(found[0])
        else:
            self.look_at_all(len(found), peak)

    def look_at_the_only(self, beside):
        region, slack = self.regions[0], SLACK * library.hw_cap()
        if beside > region.beside + slack / 2:
            self.known = beside
            self.compile_again("more stays beside it than was reserved for")
        elif beside < region.beside - slack and not region.answer["own"]:
            self.known = beside
            self.compile_again("less stays beside it than was reserved for")

    def look_at_all(self, calls, peak):
        """What each lacks is there so often in a step; where calls differ, on average."""
        lacks = sum(region.lacks for region in self.regions) * calls / len(self.regions)
        room = (1 - MARGIN) * library.hw_cap() - peak
        if self.share == 0 and lacks > 0 and room > SLACK * library.hw_cap():
            self.share = min(1.0, room / lacks)
            self.compile_again("there is room for %d %% of what the compiler would keep" % (100 * self.share))

    def compile_again(self, why):
        self.times += 1
        self.regions = []
        if self.config is not None:
            self.config_came(self.config)
        sys.modules["torch._dynamo"].reset()
        self.remark("what torch.compile has made is compiled again: " + why)
