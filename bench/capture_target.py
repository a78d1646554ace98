#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs a training script that prints once a step, as many steps at a time as standard input says.

A line is a number of steps, or "profile" and one. The answer is one line of JSON: nanoseconds of
each step, and of stopping the profiler.
"""
import builtins
import json
import runpy
import sys
import time

import torch

_print = builtins.print


class Pace:
    def __init__(self):
        self.left = 0
        self.times = []
        self.profiler = None
        self.began = 0

    def step(self, *_, **__):
        """Stands for print()."""
        now = time.perf_counter_ns()
        self.times.append(now - self.began)
        self.left -= 1
        if self.left <= 0:
            self.report()
            self.next()
        self.began = time.perf_counter_ns()

    def report(self):
        stopping = time.perf_counter_ns()
        if self.profiler is not None:
            self.profiler.stop()
            self.profiler = None
        _print(json.dumps({"steps": self.times, "stop": time.perf_counter_ns() - stopping}), flush=True)

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


pace = Pace()
pace.left = 1
pace.began = time.perf_counter_ns()
builtins.print = pace.step
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
