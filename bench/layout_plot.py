#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""layout.csv as a bar chart: how far each arena lies above its lower bound; those that reach it are
counted only. No library needed."""
import csv
import sys
from xml.sax.saxutils import escape

ROW, LEFT, WIDTH = 22, 220, 420


def chart(table):
    rows = [row for row in table if float(row["above_%"]) >= 0.01]
    rest = len(table) - len(rows)
    most = max([1.0, *(float(row["above_%"]) for row in rows)])
    height = ROW * (len(rows) + 3)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 140}" height="{height}" '
             'font-family="sans-serif" font-size="12">',
             '<rect width="100%" height="100%" fill="white"/><text x="8" y="16">arena above its lower bound, %</text>']
    for i, row in enumerate(rows):
        y = ROW * (i + 1) + 6
        above = float(row["above_%"])
        parts.append(f'<text x="8" y="{y + 12}">{escape(row["problem"])}</text>'
                     f'<rect x="{LEFT}" y="{y}" width="{WIDTH * above / most:.1f}" height="{ROW - 8}" fill="#3b78c2"/>'
                     f'<text x="{LEFT + WIDTH * above / most + 6:.1f}" y="{y + 12}">{above:.2f} in {row["seconds"]} s</text>')
    parts.append(f'<text x="8" y="{ROW * (len(rows) + 1) + 18}">{rest} other problems and plans: within 0.01 %</text>')
    return "\n".join(parts) + "\n</svg>\n"


if __name__ == "__main__":
    with open(sys.argv[1], newline="") as table:
        rows = list(csv.DictReader(table))
    with open(sys.argv[2], "w") as picture:
        picture.write(chart(rows))
