# SPDX-License-Identifier: MIT
"""Rows for verification: what it costs, and programs with something that no op shows, within 0.7 of the memory that they
take. With the guards their lines are those of the program alone; without, verification ends them."""
import json
import os
import statistics

from budget import ENVIRONMENT, RATIO, SHORT, BudgetChecks
from live import row
from rows import check, mib

TRAIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "unseen_train.py")
KINDS = {"filled": "batches that the driver fills", "setting": "a setting around a layer", "counter": "an op that counts"}
WITHOUT = {"HIGHWATER_LIVE_WITHOUT": "settings,exposures,foreign,compiled"}
VERIFICATION_FAILED = 6


class VerificationChecks(BudgetChecks):
    """As Checks of tests/gpu/run."""

    def cost(self, variant):
        """what verification costs"""
        machine, times = self.machine, {}
        for level in ("off", "full"):
            _, told = self.within(variant, SHORT, "--planner", "dtr:eqclass", "--verify", level)
            figures = machine.figures(variant.replace(", ", "-").lower() + ".budget.json")
            times[level] = statistics.median(step["ms"] for step in figures["steps"][2:])
        text = (f"{times['off']:.1f} → {times['full']:.1f} ms ({times['full'] / times['off'] - 1:+.1%}), "
                f"{mib(told['verified_bytes'])} compared, notes {told['notes']}")
        return check(told["verified_bytes"] > 0 and not told["mismatches"], text)

    def alone_kind(self, kind):
        """The lines of the program alone, and the peak that is counted of it."""
        machine = self.machine
        if kind not in self.kept:
            report = machine.path(kind + ".report.json")
            alone = machine.run(*self.command(kind), environment=ENVIRONMENT).stdout
            machine.run(machine.highwater, "train", "--budget", "1TB", "--report", report, "--", *self.command(kind),
                        environment=ENVIRONMENT)
            with open(report) as file:
                self.kept[kind] = alone, json.load(file)["measured_peak_bytes"]
        return self.kept[kind]

    def command(self, kind, *options):
        return self.machine.python, TRAIN, "--kind", kind, "--device", self.machine.device, *options

    def within_kind(self, kind, options=(), environment=None):
        """Its lines beside those alone, its status, and the report."""
        machine = self.machine
        alone, peak = self.alone_kind(kind)
        report = machine.path(kind + ".within.json")
        # What an earlier run has found to differ is kept in this folder, and would be for the next.
        kept = os.path.join(machine.folder, "cache", kind, str(len(os.listdir(machine.folder))))
        os.makedirs(os.path.join(kept, "highwater"))
        own = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "highwater", "capture")
        if os.path.isdir(own):
            os.symlink(own, os.path.join(kept, "highwater", "capture"))
        done = machine.run(machine.highwater, "train", "--budget", str(int(RATIO * peak)), "--planner", "dtr:eqclass",
                           "--verify", "full", "--report", report, "--", *self.command(kind, *options), expect=None,
                           environment={**ENVIRONMENT, "XDG_CACHE_HOME": kept, **(environment or {})})
        with open(report) as file:
            return alone, done, json.load(file)

    def guarded(self, kind):
        """with the guards as alone"""
        alone, done, told = self.within_kind(kind)
        text = (f"exit status {done.returncode}, lines {'same' if done.stdout == alone else 'different'}, "
                f"{told['recomputed_ops']} ops run again, {mib(told['verified_bytes'])} compared, notes {told['notes']}")
        return check(done.returncode == 0 and done.stdout == alone and told["recomputed_ops"] > 0, text)

    def unguarded(self, kind):
        """without the guards verification ends it"""
        hidden = ("--hidden",) if kind == "filled" else ()
        alone, done, told = self.within_kind(kind, hidden, WITHOUT)
        found = [f"op {each['op']} {each['name']} ({each['kind']})" for each in told["mismatches"]]
        text = f"exit status {done.returncode}, {len(done.stdout.splitlines())} lines, {found}, notes {told['notes']}"
        if not alone.startswith(done.stdout):
            text += ", other lines"
        return check(done.returncode == VERIFICATION_FAILED and found and alone.startswith(done.stdout), text)


ROWS = [row(VerificationChecks.cost, variant) for variant in ("GPT", "ResNet-50")] + [
    row(kind, name, KINDS[name]) for name in KINDS for kind in (VerificationChecks.guarded, VerificationChecks.unguarded)]
