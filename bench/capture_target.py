#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs a training script that prints once a step, as many steps at a time as standard input says.

A line is a number of steps, or "profile" and one. The answer is one line of JSON: for each step,
for the profiler's stop(), and for that and getting its events, nanoseconds by the clock, of the
training thread and of the process.
"""
import builtins
import json
import runpy
import sys
import time

import torch

CLOCKS = (time.perf_counter_ns, time.thread_time_ns, time.process_time_ns)

_print = builtins.print


def now():
    return [clock() for clock in CLOCKS]


def since(began):
    return [clock() - before for clock, before in zip(CLOCKS, began)]


class Pace:
    def __init__(self):
        self.left = 1
        self.times = []
        self.profiler = None
        self.began = now()

    def step(self, *_, **__):
        """Stands for print()."""
        self.times.append(since(self.began))
        self.left -= 1
        if self.left <= 0:
            self.report()
            self.next()
        self.began = now()

    def report(self):
        stopping, stop = now(), [0, 0, 0]
        if self.profiler is not None:
            self.profiler.stop()
            stop = since(stopping)
            self.profiler.events()
            self.profiler = None
        _print(json.dumps({"steps": self.times, "stop": stop, "events": since(stopping)}), flush=True)

    def next(self):
        line = sys.stdin.readline()
        if not line:
            sys.exit(0)
        self.left = int(line.split()[-1])
        self.times = []
        if line.startswith("profile"):
            self.profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                                                   profile_memory=True, record_shapes=True)
            self.profiler.start()


builtins.print = Pace().step
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
