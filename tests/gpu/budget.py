# SPDX-License-Identifier: MIT
"""Rows for training within a budget, nothing recorded before, and for allocations that fail: a ResNet-50 and a GPT,
deterministically, trained alone and within a part of the memory that they take then."""
import json
import statistics
import subprocess

from live import CLOSE, TRAIN, VARIANTS, row
from rows import check, mib, same_bits

RATIO = 0.7
SHORT, LONG = 8, 150  # steps
ENVIRONMENT = {"CUBLAS_WORKSPACE_CONFIG": ":16:8"}


class BudgetChecks:
    """As Checks of tests/gpu/run."""

    def __init__(self, machine):
        self.machine = machine
        self.kept = {}

    def train(self, variant, figures, steps, *options):
        return (self.machine.python, TRAIN, "--device", self.machine.device, "--steps", str(steps), "--figures",
                self.machine.path(figures), *options, *VARIANTS[variant])

    def alone(self, variant, steps):
        """Its figures, and its peak: on the CPU that of a run under a plan that drops nothing."""
        machine, name = self.machine, f"{variant}.{steps}.alone.json".replace(", ", "-").lower()
        if name not in self.kept:
            report = machine.path(name + ".report")
            machine.run(machine.highwater, "train", "--report", report, "--", *self.train(variant, name, steps),
                        environment=ENVIRONMENT)
            with open(report) as file:
                counted = json.load(file)["measured_peak_bytes"]
            machine.run(*self.train(variant, name, steps), environment=ENVIRONMENT)
            self.kept[name] = machine.figures(name), counted
        return self.kept[name]

    def within(self, variant, steps, *options):
        machine, name = self.machine, variant.replace(", ", "-").lower()
        alone, counted = self.alone(variant, steps)
        budget = int(RATIO * counted)
        report = machine.path(name + ".budget.report.json")
        machine.run(machine.highwater, "train", "--budget", str(budget), *options, "--report", report, "--",
                    *self.train(variant, name + ".budget.json", steps), environment=ENVIRONMENT)
        with open(report) as file:
            told = json.load(file)
        figures = machine.figures(name + ".budget.json")
        losses, same = same_bits(alone, figures)
        peak = max(step["peak"] or 0 for step in figures["steps"])
        times = [statistics.median(step["ms"] for step in each["steps"][2:]) for each in (alone, figures)]
        last = statistics.median(step["ms"] for step in figures["steps"][-4:])
        # Each time that the caching allocator asks the driver takes as long as many ops.
        asked = [(each["steps"][-1]["segments"] or 0) - (each["steps"][2]["segments"] or 0) for each in (alone, figures)]
        text = (f"{losses} of {steps} losses, parameters {'same' if alone['digest'] == figures['digest'] else 'different'}; counted "
                f"{mib(told['measured_peak_bytes'])} of {mib(budget)}, alone {mib(counted)}, max_memory_allocated {mib(peak)}; "
                f"modes {told['modes']}, {times[0]:.1f} → {times[1]:.1f} ms, last {last:.1f}; "
                f"asked the driver {asked[0]} → {asked[1]} times from the fourth step on")
        check(same, text)
        check(told["measured_peak_bytes"] <= budget and peak <= budget * (1 + CLOSE), text)
        return text, told

    def dtr(self, variant):
        """DTR within 0.7 of the memory, from the first op on"""
        return self.within(variant, SHORT, "--planner", "dtr:eqclass")[0]

    def hand_over(self, variant):
        """one number: a plan takes over from DTR"""
        text, told = self.within(variant, LONG)
        return check(told["modes"].get("plan", 0) > 0, text)

    def refused(self, variant):
        """--cap: a small card on a large machine"""
        machine = self.machine
        _, counted = self.alone(variant, SHORT)
        done = machine.run(machine.highwater, "train", "--cap", str(int(RATIO * counted)), "--",
                           *self.train(variant, "cap.json", SHORT), environment=ENVIRONMENT, expect=None)
        said = [line for line in done.stderr.splitlines() if "OutOfMemory" in line or "allocate memory" in line]
        return check(done.returncode == 1 and said, f"exit status {done.returncode}: {(said or [done.stderr[-300:]])[-1]}")

    def rescued(self, variant):
        """--on-oom: an allocation that the driver has no memory for is made after all"""
        machine, alone = self.machine, self.alone(variant, SHORT)[0]
        machine.needs_gpu()
        # Fragments are in what the allocator has taken, but not in what it needs.
        limit = str(int(min(0.85 * max(step["reserved"] for step in alone["steps"]),
                            0.95 * max(step["peak"] for step in alone["steps"]))))
        dies = subprocess.run(self.train(variant, "dies.json", SHORT, "--memory", limit), capture_output=True, text=True,
                              env={**machine.environment, **ENVIRONMENT}, timeout=machine.left(), check=False)
        report = machine.path("rescue.report.json")
        done = machine.run(machine.highwater, "train", "--on-oom", "--report", report, "--",
                           *self.train(variant, "rescued.json", SHORT, "--memory", limit), environment=ENVIRONMENT, expect=None)
        text = f"with {mib(int(limit))} alone: {dies.stderr.strip().splitlines()[-1][:120] if dies.returncode else 'enough'}"
        check(dies.returncode != 0, text)
        check(done.returncode == 0, f"{text}; rescued: exit status {done.returncode}: {done.stderr.strip()[-300:]}")
        figures = machine.figures("rescued.json")
        losses, same = same_bits(alone, figures)
        with open(report) as file:
            told = json.load(file).get("rescues")
        return check(same, f"{text}; {losses} of {SHORT} losses, {told}")


ROWS = [row(BudgetChecks.dtr, variant) for variant in VARIANTS] + [
    row(kind, variant) for variant in ("GPT", "ResNet-50") for kind in (BudgetChecks.hand_over, BudgetChecks.refused,
                                                                       BudgetChecks.rescued)]
