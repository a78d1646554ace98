# SPDX-License-Identifier: MIT
"""Rows of a table: what is checked, and how it went."""
import subprocess


class Skip(Exception):
    """Why a row was not run."""


def check(holds, text):
    if not holds:
        raise AssertionError(text)
    return text


def same_bits(alone, other):
    """How many losses are, and whether all are and the parameters too: of what live_train.py writes."""
    losses = sum(a["loss"] == b["loss"] for a, b in zip(alone["steps"], other["steps"]))
    return losses, losses == len(alone["steps"]) and alone["digest"] == other["digest"]


def mib(count):
    return f"{count / 2 ** 20:,.1f} MiB"


def title(row):
    return row.__doc__.strip().splitlines()[0]


def evaluate(row, checks, machine):
    if machine.left() <= 1:
        return "skipped", "the time is over"
    try:
        return "pass", row(checks)
    except Skip as reason:
        return "skipped", str(reason)
    except AssertionError as error:
        return "fail", str(error)
    except subprocess.TimeoutExpired as error:
        return "fail", f"no end within {error.timeout:.0f} s"
    except Exception as error:  # a row that breaks is no reason to lose the others
        return "fail", f"{type(error).__name__}: {error}"


def table(rows, head):
    width = max(len(name) for name, _, _ in rows)
    lines = [head, ""] + [f"{name:<{width}}  {status:<7}  {text}" for name, status, text in rows]
    counts = {status: sum(1 for _, each, _ in rows if each == status) for status in ("pass", "fail", "skipped")}
    return "\n".join(lines + ["", ", ".join(f"{count} {status}" for status, count in counts.items())])
