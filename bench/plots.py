# SPDX-License-Identifier: MIT
"""What the benchmarks written in Python share: building, CSV files, line charts as SVG."""
import csv
import math
import os
import subprocess
import sys
from xml.sax.saxutils import escape

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#e377c2",
           "#7f7f7f", "#bcbd22", "#393b79", "#ad494a", "#637939", "#843c39", "#7b4173")
TELLING = 10  # of the colours; those after them are like some of them, and their lines are dashed


def build(preset, target):
    """Builds `target` with a preset; the path of the executable. One that is built already: $HIGHWATER_BIN."""
    if "HIGHWATER_BIN" in os.environ:
        return os.path.join(os.environ["HIGHWATER_BIN"], target)
    folder = os.path.join(ROOT, "build", preset)
    quiet = {"cwd": ROOT, "stdout": sys.stderr, "check": True}
    if not os.path.exists(os.path.join(folder, "CMakeCache.txt")):
        subprocess.run(["cmake", "--preset", preset], **quiet)
    subprocess.run(["cmake", "--build", folder, "--target", target], **quiet)
    return os.path.join(folder, "bin", target)


def write_csv(path, rows):
    """Writes dictionaries with the same keys."""
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def print_table(header, rows):
    """Prints rows of texts in columns, the first one to the left, the others to the right."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, *rows]:
        print("  ".join(text.ljust(width) if i == 0 else text.rjust(width)
                        for i, (text, width) in enumerate(zip(row, widths))).rstrip())


def ticks(low, high, logarithmic):
    """About five round values within the range."""
    if logarithmic:
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        steps = (1, 2, 5) if last - first <= 3 else (1,)
        values = [step * 10.0 ** power for power in range(first, last + 1) for step in steps]
    else:
        raw = (high - low) / 5 or 1
        power = 10.0 ** math.floor(math.log10(raw))
        step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= raw)
        values = [i * step for i in range(math.ceil(low / step), math.floor(high / step) + 1)]
    return [value for value in values if low * 0.999 <= value <= high * 1.001]


def line_chart(path, title, x_label, y_label, series, logarithmic=False, unjoined=(), from_zero=True):
    """Draws {name: [(x, y), ...]} as an SVG file; `logarithmic`: the y axis, "both": the x axis too; `unjoined`: names of
    series without a line between their points; `from_zero`: the y axis holds 0 if not logarithmic."""
    width, height, left, top, right, bottom = 760, 440, 70, 40, 200, 50
    points = [point for line in series.values() for point in line]
    x_low, x_high = min(x for x, _ in points), max(x for x, _ in points)
    y_low, y_high = min(y for _, y in points), max(y for _, y in points)
    if from_zero and not logarithmic:
        y_low = min(y_low, 0.0)
    scale = math.log10 if logarithmic else float
    span = (scale(y_high) - scale(y_low)) or 1.0
    both = logarithmic == "both"
    x_scale = math.log10 if both else float
    x_span = (x_scale(x_high) - x_scale(x_low)) or 1

    def at(x, y):
        across = (x_scale(x) - x_scale(x_low)) / x_span
        up = (scale(y) - scale(y_low)) / span
        return (left + across * (width - left - right),
                height - bottom - up * (height - top - bottom))

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
           'font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{height}" fill="white"/>',
           f'<text x="{left}" y="22" font-size="15">{escape(title)}</text>']
    for value in ticks(y_low, y_high, logarithmic):
        _, y = at(x_low, value)
        out.append(f'<line x1="{left}" y1="{y:.1f}" x2="{width - right}" y2="{y:.1f}" '
                   'stroke="#ddd"/>'
                   f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
    for value in ticks(x_low, x_high, both):
        x, _ = at(value, y_low)
        out.append(f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{height - bottom}" '
                   f'stroke="#eee"/><text x="{x:.1f}" y="{height - bottom + 17}" '
                   f'text-anchor="middle">{value:g}</text>')
    out.append(f'<text x="{(left + width - right) / 2}" y="{height - 12}" '
               f'text-anchor="middle">{escape(x_label)}</text>'
               f'<text transform="translate(16 {(top + height - bottom) / 2}) rotate(-90)" '
               f'text-anchor="middle">{escape(y_label)}</text>')
    for i, (name, line) in enumerate(series.items()):
        colour = COLOURS[i % len(COLOURS)]
        stroke = f'stroke="{colour}" stroke-width="2"' + (' stroke-dasharray="6 3"' if i >= TELLING else "")
        places = [at(x, y) for x, y in sorted(line)]
        path_text = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        if name not in unjoined:
            out.append(f'<polyline points="{path_text}" fill="none" {stroke}/>')
        out.extend(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>'
                   for x, y in places)
        y = top + 10 + 18 * i
        out.append(f'<line x1="{width - right + 12}" y1="{y}" x2="{width - right + 32}" y2="{y}" '
                   f'{stroke}/>'
                   f'<text x="{width - right + 38}" y="{y + 4}">{escape(name)}</text>')
    out.append("</svg>")
    with open(path, "w") as file:
        file.write("\n".join(out) + "\n")
