# SPDX-License-Identifier: MIT
"""Plots of bench/dtr-chain and bench/dtr-trace: plot_dtr.py chain|trace FILE.csv FILE.svg"""
import csv
import sys

COLOURS = {"dtr:full": "#1b6ca8", "h_e*": "#2a9d5c", "dtr:lru": "#c8553d"}
MARKERS = {"dtr:full": "o", "h_e*": "s", "dtr:lru": "^"}


def plot_chain(rows, plt):
    """Extra computations over n, one panel a budget, with Chen et al.'s theory dashed."""
    budgets = list(dict.fromkeys(row["budget"] for row in rows))
    figure, panels = plt.subplots(1, len(budgets), figsize=(5.2 * len(budgets), 4), squeeze=False)
    for budget, axes in zip(budgets, panels[0]):
        mine = [row for row in rows if row["budget"] == budget]
        for name in dict.fromkeys(row["heuristic"] for row in mine):
            done = [row for row in mine if row["heuristic"] == name and row["status"] == "ok"]
            axes.plot([int(row["layers"]) for row in done], [int(row["extra"]) for row in done],
                      marker=MARKERS[name], color=COLOURS[name], label=name)
        theory = sorted({(int(row["layers"]), float(row["theory"])) for row in mine})
        label = "n (Chen et al.)" if budget == "2sqrt(n)" else "n log2 n (Chen et al.)"
        axes.plot(*zip(*theory), "--", color="black", label=label)
        axes.set(xscale="log", yscale="log", title=f"budget {budget}", xlabel="layers n",
                 ylabel="extra computations")
        axes.set_xscale("log", base=2)
        axes.grid(alpha=0.3)
        axes.legend()
    return figure


def plot_trace(rows, plt):
    """A row a layer, a column a step: when each activation and gradient is in memory."""
    panels = list(dict.fromkeys((row["heuristic"], row["bytes"]) for row in rows))
    figure, axes = plt.subplots(len(panels), 1, figsize=(9, 3.1 * len(panels)), squeeze=False)
    kinds = {("activation", "0"): ("#9db8d2", "activation, first computed"),
             ("activation", "1"): ("#c8553d", "activation, rematerialized"),
             ("gradient", "0"): ("#3a3a3a", "gradient"),
             ("gradient", "1"): ("#8a2be2", "gradient, rematerialized")}
    for (heuristic, size), plot in zip(panels, axes[:, 0]):
        mine = [row for row in rows if (row["heuristic"], row["bytes"]) == (heuristic, size)]
        layers = 1 + max(int(row["layer"]) for row in mine)
        for kind, (colour, label) in kinds.items():
            spans = [row for row in mine if (row["kind"], row["recomputed"]) == kind]
            if not spans:
                continue
            begin = [int(row["begin"]) for row in spans]
            width = [int(row["end"]) - int(row["begin"]) for row in spans]
            plot.barh([int(row["layer"]) for row in spans], width, left=begin, height=1.0,
                      color=colour, label=label, linewidth=0)
        plot.axvline(layers, color="black", linewidth=0.8, linestyle=":")
        plot.set(title=f"{heuristic}, n = {layers}, B = {size}", ylabel="layer", ylim=(-0.5, layers),
                 xlim=(0, max(int(row["end"]) for row in mine)))
    axes[0, 0].legend(loc="upper right", fontsize=8)
    axes[-1, 0].set_xlabel("step of the schedule (dotted: the backward pass begins)")
    return figure


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in ("chain", "trace"):
        sys.exit(__doc__)
    try:
        import matplotlib
    except ImportError:
        print("no plot: matplotlib is missing (apt-get install python3-matplotlib)")
        return
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "highwater"  # the same file for the same data
    import matplotlib.pyplot as plt

    with open(sys.argv[2], newline="") as file:
        rows = list(csv.DictReader(file))
    if not rows:
        print("no plot: no row in it")
        return
    figure = (plot_chain if sys.argv[1] == "chain" else plot_trace)(rows, plt)
    figure.tight_layout()
    figure.savefig(sys.argv[3], metadata={"Date": None})
    print("plot:", sys.argv[3])


main()
