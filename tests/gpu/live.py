# SPDX-License-Identifier: MIT
"""Rows for training under a plan: a ResNet-50 and a GPT, in float32 and under autocast, deterministically. Each is
recorded, planned at 0.7 of its peak, trained alone and trained under the plan."""
import functools
import json
import os
import shutil
import statistics

from rows import Skip, check, mib, same_bits

TRAIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "live_train.py")
RATIO = 0.7
STEPS = 8
CLOSE = 0.03  # the allocator rounds, and cuBLAS keeps what it has once taken
VARIANTS = {"ResNet-50": ("--model", "resnet50"), "ResNet-50, autocast": ("--model", "resnet50", "--autocast"),
            "GPT": ("--model", "gpt"), "GPT, autocast": ("--model", "gpt", "--autocast")}


class LiveChecks:
    """As Checks of tests/gpu/run."""

    def __init__(self, machine):
        self.machine = machine
        self.kept = {}

    def train(self, variant, figures):
        return (self.machine.python, TRAIN, "--device", self.machine.device, "--steps", str(STEPS), "--figures",
                self.machine.path(figures), *VARIANTS[variant])

    def done(self, variant):
        if variant not in self.kept:
            raise Skip("it was not trained under a plan")
        return self.kept[variant]

    def prepare(self, variant):
        """recorded, planned at 0.7, trained alone and under the plan"""
        machine = self.machine
        captures = machine.environment.get("HIGHWATER_CAPTURES")
        if not (captures and os.listdir(captures)) and not shutil.which(os.environ.get("CXX", "c++")):
            raise Skip("there is no C++ compiler, and no runtime for this torch was brought (scripts/pack_gpu)")
        name = variant.replace(", ", "-").lower()
        path, plan, report = (machine.path(name + end) for end in (".live.hws", ".live.plan.json", ".report.json"))
        # cuBLAS is deterministic with one of two settings only; this one takes less memory.
        environment = {"CUBLAS_WORKSPACE_CONFIG": ":16:8"}
        machine.run(machine.highwater, "record", *machine.gpu, "-o", path, "--warmup", "0", "--steps", "3", "--",
                    *self.train(variant, name + ".recorded.json"), environment=environment)
        machine.run(machine.highwater, "plan", path, "--ratio", str(RATIO), "--time-limit", "10", "-o", plan)
        machine.run(*self.train(variant, name + ".alone.json"), environment=environment)
        machine.run(machine.highwater, "train", path, plan, "--report", report, "--",
                    *self.train(variant, name + ".planned.json"), environment=environment)
        with open(report) as file:
            told = json.load(file)
        self.kept[variant] = told, machine.figures(name + ".alone.json"), machine.figures(name + ".planned.json")
        return f"{told['steps']} steps, {told['recomputed_ops']} ops run again, {mib(told['pinned_bytes'])} pinned"

    def bits(self, variant):
        """losses and parameters as alone"""
        _, alone, planned = self.done(variant)
        losses, same = same_bits(alone, planned)
        return check(same, f"{losses} of {STEPS} losses bit-identical, parameters " + (
            "too" if alone["digest"] == planned["digest"] else "different"))

    def planned(self, variant):
        """steps under the plan"""
        told, _, _ = self.done(variant)
        left = [f"{each['op']}: expected {each['expected']}, came {each['found']}" for each in told["divergences"][:1]]
        return check(told["steps_planned"] >= STEPS - 2 and not left,
                     f"{told['steps_planned']} of {told['steps']}" + "".join(", op " + each for each in left))

    def counted(self, variant):
        """peak that was counted beside the prediction"""
        told, _, _ = self.done(variant)
        ours, predicted = told["measured_peak_bytes"], told["predicted_peak_bytes"]
        return check(ours <= predicted * (1 + CLOSE), f"{mib(ours)}, predicted {mib(predicted)}")

    def allocated(self, variant):
        """max_memory_allocated of the last step beside the prediction"""
        self.machine.needs_gpu()
        told, alone, planned = self.done(variant)
        peak, predicted, before = planned["steps"][-1]["peak"], told["predicted_peak_bytes"], alone["steps"][-1]["peak"]
        return check(abs(peak - predicted) <= CLOSE * predicted,
                     f"{mib(peak)}, predicted {mib(predicted)}, alone {mib(before)} ({peak / before:.2f} of it)")

    def time(self, variant):
        """step time beside the prediction"""
        told, alone, planned = self.done(variant)
        before, after = (statistics.median(step["ms"] for step in each["steps"][2:]) for each in (alone, planned))
        return (f"{before:.1f} → {after:.1f} ms ({after / before - 1:+.1%}), predicted {told['predicted_overhead'] - 1:+.1%}, "
                f"runtime {told['runtime_ns_per_op']} ns an op")

    KINDS = (prepare, bits, planned, counted, allocated, time)


def row(kind, variant, label=None):
    @functools.wraps(kind)
    def of(checks):
        return kind(checks, variant)
    of.__doc__ = f"{label or variant}: {kind.__doc__}"
    return of


ROWS = [row(kind, variant) for variant in VARIANTS for kind in LiveChecks.KINDS]
