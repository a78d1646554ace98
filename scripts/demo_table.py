#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints what scripts/demo found in its folder; fails when a result differed or a peak was missed."""
import json
import pathlib
import sys


def megabytes(value):
    return f"{value / 1e6:.2f} MB"


def load(path):
    return json.loads(path.read_text()) if path.exists() else None


def main(folder):
    info = load(folder / "info.json")
    peak = info["baseline"]["peak_bytes"]
    print(f"\nResNet-18 training step: {info['ops']} ops, baseline peak {megabytes(peak)}, "
          f"op time {info['baseline']['time_ns'] / 1e6:.1f} ms, budget 60 % = {megabytes(peak * 0.6)}\n")
    columns = "{:14} {:>15} {:>10} {:>15} {:>10} {:>10}"
    print(columns.format("planner", "predicted peak", "overhead", "measured peak", "compared", "different"))
    unplanned = load(folder / "unplanned.run.json")
    print(columns.format("unplanned", megabytes(unplanned["predicted_peak_bytes"]), "+0.0 %",
                         megabytes(unplanned["measured_peak_bytes"]), unplanned["outputs_compared"],
                         unplanned["outputs_different"]))
    failed = unplanned["outputs_different"] != 0
    for planner in ("none", "chen-greedy", "dtr:eqclass", "highwater"):
        name = planner.replace(":", "-")
        plan, run = load(folder / f"{name}.json"), load(folder / f"{name}.run.json")
        if run is None:
            least = plan.get("smallest_budget_bytes")
            print(f"{planner:14} no plan at 60 %" + (f"; its smallest is about {megabytes(least)}" if least else ""))
            continue
        print(columns.format(planner, megabytes(run["predicted_peak_bytes"]), f"{(plan['overhead'] - 1) * 100:+.1f} %",
                             megabytes(run["measured_peak_bytes"]), run["outputs_compared"], run["outputs_different"]))
        missed = abs(run["measured_peak_bytes"] - run["predicted_peak_bytes"]) > 0.001 * run["predicted_peak_bytes"]
        failed |= run["outputs_different"] != 0 or run["outputs_compared"] == 0 or missed
    print(f"\nsession, plans and pictures: {folder}/")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
