# SPDX-License-Identifier: MIT
"""What the benchmarks of training within a budget share: a whole program under `highwater train`, and what it came to."""
import json
import os
import subprocess


def must(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(" ".join(command) + ": " + done.stderr)
    return done.stdout


def train(highwater, command, folder, *options, seconds=None):
    """What the program prints, its report, and its steps as --progress tells them; None where the budget is too small,
    or the program takes longer than that many seconds."""
    report, progress = (os.path.join(folder, name) for name in ("report.json", "progress.jsonl"))
    if os.path.exists(progress):
        os.remove(progress)
    words = [highwater, "train", *options, "--report", report, "--progress", progress, "--", *command]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode == 3:
        return None
    if done.returncode:
        raise SystemExit(" ".join(words) + ": " + done.stderr)
    with open(report) as file:
        told = json.load(file)
    with open(progress) as file:
        steps = [event for event in map(json.loads, file) if event["event"] == "step"]
    return done.stdout, told, steps
