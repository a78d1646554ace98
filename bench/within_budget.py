# SPDX-License-Identifier: MIT
"""What the benchmarks of training within a budget share: a whole program under `highwater train`, and what it came to."""
import json
import os
import signal
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
    # In a group of its own: the program trains on when only who started it is killed.
    running = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        printed, complaint = running.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)
        running.communicate()
        return None
    if running.returncode == 3:
        return None
    if running.returncode:
        raise SystemExit(" ".join(words) + ": " + complaint)
    with open(report) as file:
        told = json.load(file)
    with open(progress) as file:
        steps = [event for event in map(json.loads, file) if event["event"] == "step"]
    return printed, told, steps
