#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Signals that whoever starts Highwater has ignored or blocked are so in the program, too."""
import os
import signal
import subprocess
import unittest

from sessions import HIGHWATER, InFolder

# What the program finds: ignored and blocked signals.
TOLD = """
    with open("/proc/self/status") as status:
        print(*(line for line in status if line.startswith(("SigIgn", "SigBlk"))))
    """
SIGNALS = (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGQUIT, signal.SIGTERM, signal.SIGCHLD, signal.SIGUSR1)


def ignore(number):
    return lambda: signal.signal(number, signal.SIG_IGN)


def block(number):
    return lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [number])


class Signals(InFolder):
    def told(self, prepare, *around):
        done = subprocess.run([*around, "/usr/bin/python3", self.program], preexec_fn=prepare, restore_signals=False,
                              capture_output=True, text=True, timeout=60)
        return done.stdout, done.returncode

    def check(self, prepare):
        alone, _ = self.told(prepare)
        self.assertIn("SigIgn", alone)
        ways = ((("train", "--budget", "1GB", "--"), 0), (("record", "-o", self.session, "--"), 5))
        for words, status in ways:  # 5: it does not train
            self.assertEqual(self.told(prepare, HIGHWATER, *words), (alone, status), words)

    def test_dispositions_and_masks(self):
        self.program = self.script(TOLD)
        self.check(lambda: None)
        for number in SIGNALS:
            for way in (ignore, block):
                with self.subTest(signal=number.name, way=way.__name__):
                    self.check(way(number))

    def test_an_ignored_interrupt_ends_nothing(self):
        program = self.script("""
            import os, signal
            os.kill(os.getppid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
            print("still there")
            """)
        done = subprocess.run([os.path.abspath(HIGHWATER), "train", "--", "/usr/bin/python3", program],
                              preexec_fn=ignore(signal.SIGINT), capture_output=True, text=True, timeout=60)
        self.assertEqual((done.stdout, done.returncode), ("still there\n", 0), done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
