# SPDX-License-Identifier: MIT
"""Records two steps of a small network on the CPU: a Kineto trace and an execution trace of the same run.

    PYTHON record_training.py KINETO.json EXECUTION_TRACE.json

Only what a reader of traces wants is kept: no path, no name of a machine, no version.
"""
import argparse
import json
import re

import torch


def train(model, steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(8, 3, 16, 16)).pow(2).mean().backward()
        optimizer.step()


def network():
    from torch.nn import Conv2d, Flatten, Linear, ReLU, Sequential
    return Sequential(Conv2d(3, 8, 3, padding=1), ReLU(), Conv2d(8, 8, 3, padding=1), ReLU(), Flatten(), Linear(8 * 256, 10))


def clean_kineto(path):
    with open(path) as file:
        document = json.load(file)
    wanted = {"cpu_op", "user_annotation", "cpu_instant_event"}
    events, threads = [], {}
    for event in document["traceEvents"]:
        module = event.get("cat") == "python_function" and event["name"].startswith("nn.Module: ")
        if module or event.get("cat") in wanted:
            event["args"] = {key: value for key, value in event.get("args", {}).items() if "ython" not in key}
            event.update(pid=1000, tid=threads.setdefault(event["tid"], 1 + len(threads)))
            events.append(event)
    kept = {key: document[key] for key in ("schemaVersion", "baseTimeNanoseconds", "displayTimeUnit") if key in document}
    with open(path, "w") as file:
        json.dump({**kept, "traceEvents": events}, file)


def clean_execution_trace(path):
    with open(path) as file:
        document = json.load(file)
    kept = {key: document[key] for key in ("schema", "start_ts") if key in document}
    with open(path, "w") as file:
        json.dump({**kept, "pid": 1000, "time": "2026-01-01 00:00:00", "nodes": document["nodes"]}, file)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kineto")
    parser.add_argument("execution_trace")
    options = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = network()
    train(model, 1)
    observer = torch.profiler.ExecutionTraceObserver().register_callback(options.execution_trace)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True, with_stack=True,
                                execution_trace_observer=observer) as profile:
        train(model, 2)
    profile.export_chrome_trace(options.kineto)
    clean_kineto(options.kineto)
    clean_execution_trace(options.execution_trace)
    for path in (options.kineto, options.execution_trace):
        with open(path) as file:
            assert not re.search(r"/(home|root|usr|work|tmp)/|hostname", file.read()), path


if __name__ == "__main__":
    main()
