#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Programs that fork while they train within a budget, or under a plan: children end, and find the bytes that they read."""
import os
import subprocess

import nightly
from sessions import HIGHWATER, InFolder
from torch2 import TORCH2, needs_torch2

BEGIN = """
    import hashlib, os, signal, sys, threading, time, torch
    torch.manual_seed(0)
    layers = [layer for _ in range(8) for layer in (torch.nn.Linear(128, 128), torch.nn.Tanh())]
    model = torch.nn.Sequential(*layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    def digest(tensors):
        return hashlib.sha256(b"".join(bytes(t.detach().numpy()) for t in tensors)).hexdigest()
    def step(between=lambda made: None):
        made = [torch.randn(512, 128)]
        for layer in layers:
            made.append(layer(made[-1]))
        between(made)
        optimizer.zero_grad()
        made[-1].square().mean().backward()
        optimizer.step()
    """

# In each step children read all that the forward pass has made: some with ops, some past them, some in a thread.
READERS = BEGIN + """
    def child(made):
        print("child", digest(made), flush=True)
    def summing(made):
        print("child", [t.double().sum().item().hex() for t in made], flush=True)
        for t in made: t.data.add_(1)  # its own copy
        child(made)
    def threaded(made):
        thread = threading.Thread(target=child, args=(made,))
        thread.start()
        thread.join()
    def fork(read):
        def between(made):
            pid = os.fork()
            if pid == 0:
                read(made)
                os._exit(0)
            print("status", os.waitpid(pid, 0)[1], digest(made[:1]))
        return between
    for number in range(6):
        step(fork((child, summing, threaded)[number % 3]) if number > 1 else lambda made: None)
    print(digest(model.parameters()))
    """

# A thread forks while the main one trains. Every other child reads what the last step has left.
BESIDE = BEGIN + """
    statuses, stop, kept = set(), False, [torch.tanh(torch.randn(64, 64)) for _ in range(4)]
    expected = digest(t + 0 for t in kept)
    step()  # what happens once in a process takes locks of the C library's, which no fork minds
    def beside():
        while not stop or len(statuses) == 0:
            for reads in (False, True):
                pid = os.fork()
                if pid == 0:
                    os._exit(int(reads and digest(t + 0 for t in kept) != expected))
                statuses.add(os.waitpid(pid, 0)[1])
            time.sleep(0.005)
    thread = threading.Thread(target=beside, daemon=True)
    thread.start()
    for _ in range(30): step()
    stop = True
    thread.join()
    print("statuses", statuses, digest(model.parameters()))
    """

# A child goes on to train, as a copy of its parent.
TRAINER = BEGIN + """
    for _ in range(3): step()
    pid = os.fork()
    for _ in range(3): step()
    if pid: os.waitpid(pid, 0)
    print(digest(model.parameters()), flush=True)
    """


class Forks(InFolder):
    python = "/usr/bin/python3"

    def run_it(self, *command):
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def check(self, program, planned=True):
        script = self.script(program)
        plain = self.run_it(self.python, script)
        self.assertTrue(plain)
        with self.subTest("budget"):
            self.assertEqual(self.run_it(HIGHWATER, "train", "--budget", "5MB", "--", self.python, script), plain)
        with self.subTest("recorded"):
            recorded = self.run_it(HIGHWATER, "record", "--steps", "1", "--warmup", "1", "-o", self.session, "--",
                                   self.python, script)
            self.assertEqual(recorded, plain)
        if not planned:
            return
        with self.subTest("planned"):
            plan = os.path.join(self.folder, "p.json")
            self.run_it(HIGHWATER, "plan", self.session, "--ratio", "0.97", "-o", plan)
            self.assertEqual(self.run_it(HIGHWATER, "train", self.session, plan, "--", self.python, script), plain)

    def test_children_that_read_what_is_dropped(self):
        self.check(READERS)

    def test_a_thread_that_forks(self):
        self.check(BESIDE)

    def test_a_child_that_trains(self):
        self.check(TRAINER)


@needs_torch2
@nightly.repeats("test_a_thread_that_forks", "test_children_that_read_what_is_dropped")
class ForksOnTorch2(Forks):
    python = TORCH2


if __name__ == "__main__":
    nightly.main()
