#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Kills the recorder and the training at random moments and lets the disk run full: every finished step stays.

HIGHWATER_KILLS: how often the recorder and how often the training are killed (default: twice each).
"""
import itertools
import os
import random
import resource
import signal
import subprocess
import time
import unittest

import attach_test
from attach_test import HIGHWATER

KILLS = int(os.environ.get("HIGHWATER_KILLS", "2"))

# Preloaded into the recorder, it kills it right after its call of ptrace() with the number KILLED_AT.
KILLER = r"""
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
long ptrace(long request, long thread, void* address, void* data) {
    static int calls = 0;
    const long result = syscall(SYS_ptrace, request, thread, address, data);
    if (++calls == atoi(getenv("KILLED_AT"))) raise(SIGKILL);
    return result;
}
"""


class Kills(attach_test.Attaching):
    def setUp(self):
        super().setUp()
        self.at_once = os.path.join(self.folder, "at_once.py")
        for path, pause in ((self.mlp, "0.02"), (self.at_once, "0")):
            with open(path, "w") as file:
                file.write(attach_test.MLP.replace("sleep(0.002)", f"sleep({pause})"))

    def steps_of(self, name):
        """Whole ones that the session holds; it opens, and its last step is a graph that can be planned."""
        steps, = self.rows("select count(*) from steps", name)[0]
        done = subprocess.run([HIGHWATER, "info", "--json", self.path(name)], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0 if steps else 4, done.stderr)
        empty = self.rows("select id from steps where not exists"
                          " (select 1 from ops where seq >= first_seq and seq < end_seq)"
                          " and id not in (select step from packed_steps)", name)
        self.assertEqual(empty, [])
        return steps

    def announced(self, recorder):
        """Steps that the recorder, which has ended, says it has."""
        return 1 + recorder.stderr.read().count("highwater: step ")  # in_background() has read the first

    def assert_losses_as_untouched(self):
        seen = self.losses()
        plain = subprocess.run([self.python, self.at_once, str(len(seen)), "main"], capture_output=True, text=True,
                               timeout=600, check=True)
        self.assertEqual(plain.stdout.splitlines(), seen)

    def killer(self):
        source, library = os.path.join(self.folder, "killer.c"), os.path.join(self.folder, "killer.so")
        with open(source, "w") as file:
            file.write(KILLER)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
        return library

    def test_of_the_recorder_at_each_step_of_its_entry(self):
        killer = self.killer()
        for script in (self.mlp, self.at_once):  # mostly asleep; mostly at work
            process = self.start(self.python, script, attach_test.MANY, "main")
            for call in itertools.count(1):
                done = self.attach(process.pid, "--steps", "1", name=f"{call}.hws",
                                   environment={**os.environ, "LD_PRELOAD": killer, "KILLED_AT": str(call)})
                self.goes_on(process)
                if done.returncode != -signal.SIGKILL:
                    break
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertGreater(call, 15)
            self.end(process)
            self.assert_losses_as_untouched()

    def test_of_the_recorder_while_it_enters(self):
        moments = random.Random(3)
        process = self.start(self.python, self.at_once, attach_test.MANY, "main")
        for kill in range(KILLS):
            recorder = subprocess.Popen([HIGHWATER, "attach", str(process.pid), "-o", self.path(f"{kill}.hws")],
                                        stderr=subprocess.DEVNULL)
            time.sleep(moments.uniform(0, 0.3))
            recorder.kill()
            recorder.wait()
            self.goes_on(process)
        self.assertEqual(self.attached(process.pid, "--steps", "1", name="last.hws")["steps"], 1)
        self.end(process)
        self.assert_losses_as_untouched()

    def test_of_the_recorder(self):
        moments = random.Random(1)
        process = self.start_mlp()
        for kill in range(KILLS):
            name = f"{kill}.hws"
            recorder = self.in_background(process.pid, "--duration", "100", name=name)
            time.sleep(moments.uniform(0, 0.5))
            recorder.kill()
            recorder.wait()
            self.assertGreaterEqual(self.steps_of(name), self.announced(recorder))
            self.goes_on(process)
        self.assertEqual(self.attached(process.pid, "--steps", "1", name="last.hws")["steps"], 1)
        self.end(process)
        self.assert_losses_as_untouched()

    def test_of_the_training(self):
        moments = random.Random(2)
        for kill in range(KILLS):
            name = f"{kill}.hws"
            process = self.start_mlp()
            recorder = self.in_background(process.pid, "--duration", "100", name=name)
            before = len(self.losses())  # the step before the next print may be recorded, too
            time.sleep(moments.uniform(0, 0.5))
            self.end(process)
            self.assertEqual(recorder.wait(60), 0)
            self.assertGreaterEqual(self.steps_of(name), 1 + len(self.losses()) - before)

    def test_full_disk(self):
        """As far as the recorder can tell: its files may not grow any more."""
        process = self.start_mlp()
        recorder = self.in_background(process.pid, "--duration", "100", restore_signals=False)
        limit = 64 << 10
        resource.prlimit(recorder.pid, resource.RLIMIT_FSIZE, (limit, limit))
        self.assertNotEqual(recorder.wait(60), 0)
        told = recorder.stderr.read()
        self.assertIn("highwater: error: ", told)
        self.assertGreaterEqual(self.steps_of("s.hws"), 1 + told.count("highwater: step "))
        self.goes_on(process)
        self.end(process)
        self.assert_losses_as_untouched()


if __name__ == "__main__":
    unittest.main(verbosity=2)
