# SPDX-License-Identifier: MIT
"""A training process that takes steps when told to, and what acts in it meanwhile."""
import json
import os
import statistics
import subprocess
import threading
import time

import plots

# Their ops take so little that what a tool adds to each shows.
SMALL = {"ResNet-18": ("resnet.py", "--batch", "2", "--size", "8"),
           "Transformer": ("transformer.py", "--batch", "1", "--length", "8", "--width", "32"),
           "LSTM": ("lstm.py", "--batch", "2", "--width", "32")}
# Memory stays with the process: otherwise a step of ResNet-18 has no page faults or some 13,000, as
# the heap happens to lie, which takes more than whatever is measured here.
# And one thread: others that wait for work spin, and take the time of what is measured on a busy machine.
HEAP = {"OMP_NUM_THREADS": "1", "MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}


def put_first(pid):
    """Before whatever else wants a processor."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        os.sched_setscheduler(int(thread), os.SCHED_FIFO, os.sched_param(1))


class Target:
    def __init__(self, python, script, first):
        path = os.path.join(plots.ROOT, "tests", "training", script[0])
        self.process = subprocess.Popen(
            [python, os.path.join(plots.ROOT, "bench", "capture_target.py"), path, "--steps", "1000000", *script[1:]],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **HEAP})
        self.read()
        self.first = first
        if first:
            put_first(self.process.pid)

    def read(self):
        return json.loads(self.process.stdout.readline())

    def run(self, steps, how=""):
        """Nanoseconds of each step, of the profiler's stop(), and of that and events(), by each clock."""
        self.process.stdin.write(f"{how} {steps}\n")
        self.process.stdin.flush()
        told = self.read()
        return told["steps"], told["stop"], told["events"]

    def end(self):
        self.process.stdin.close()
        self.process.wait()


class Attached:
    """A command that acts in the target in the background: attach until detach(), apply until release()."""

    def __init__(self, program, target, command):
        self.program, self.pid = program, target.process.pid
        self.process = subprocess.Popen([program, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if target.first:
            put_first(self.process.pid)
        self.told = ""
        threading.Thread(target=self.listen, daemon=True).start()
        while "attached" not in self.told and self.process.poll() is None:
            time.sleep(0.01)

    def listen(self):
        for line in self.process.stderr:
            self.told += line

    def train_until(self, what, target):
        """Lets the target take steps until the command says so."""
        while what not in self.told:
            if self.process.poll() is not None:
                raise SystemExit("it ended early: " + self.told)
            target.run(1)

    def leave(self, target, how):
        """Hooks are taken out where the training comes by; what the command then prints."""
        leaving = subprocess.Popen([self.program, how, str(self.pid)], stderr=subprocess.DEVNULL)
        while leaving.poll() is None:
            target.run(1)
        told = self.process.stdout.read()
        self.process.wait()
        return told


def medians_of(times):
    """By clock, of lists by clock."""
    return [statistics.median(clock) for clock in zip(*times)]
