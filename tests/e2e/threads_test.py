#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Programs that train in more than one thread: the steps of one at a time are recorded, nothing breaks."""
import os
import subprocess
import unittest

from sessions import InFolder
from torch2 import TORCH2, needs_torch2

HIGHWATER = os.path.join(os.environ.get("HIGHWATER_BIN", "build/release/bin"), "highwater")


class Threads(InFolder):
    python = "/usr/bin/python3"

    TRAINING = """
        import threading, time, torch
        losses = {}
        def train(name, steps, model, optimizer):
            noise = torch.Generator().manual_seed(len(name))
            for step in range(steps):
                optimizer.zero_grad()
                loss = model(torch.randn(8, 32, generator=noise)).pow(2).mean()
                loss.backward()
                optimizer.step()
                losses.setdefault(name, []).append(loss.item().hex())
        def made(seed):
            torch.manual_seed(seed)
            model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.Linear(64, 4))
            return model, torch.optim.Adam(model.parameters(), lr=0.01)
        """
    AT_ONCE = TRAINING + """
        threads = [threading.Thread(target=train, args=("x" * k, 60, *made(k))) for k in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(sorted(losses.items()))
        """
    ONE_AFTER_ANOTHER = TRAINING + """
        training = made(0)
        for k in range(8):
            thread = threading.Thread(target=train, args=("x" * k, 3, *training))
            thread.start()
            thread.join()
        print(sorted(losses.items()))
        """

    def check(self, program, options, steps, ways=("native", "python")):
        script = self.script(program)
        plain = subprocess.run([self.python, script], capture_output=True, text=True, timeout=300, check=True).stdout
        for way in ways:
            environment = {**os.environ, "HIGHWATER_CAPTURE": way}
            with self.subTest(way):
                if os.path.exists(self.session):
                    os.remove(self.session)
                done = subprocess.run([HIGHWATER, "record", "-o", self.session, *options, "--", self.python, script],
                                      capture_output=True, text=True, timeout=300, env=environment)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stdout, plain)
                seen = self.query("SELECT COUNT(DISTINCT thread), GROUP_CONCAT(name) FROM steps JOIN ops ON"
                                  " seq >= first_seq AND seq < end_seq JOIN layers ON layers.id = layer"
                                  " WHERE path IN ('0', '1', '2') AND phase <> 'optimizer' AND steps.id > 0"
                                  " GROUP BY steps.id")  # gradients are new in the first
                self.assertEqual(len(seen), steps - 1)
                self.assertEqual(len(set(seen)), 1)  # all of each step, and nobody else's
                self.assertEqual(seen[0][0], 1)
                gaps = [what for what, in self.query("SELECT what FROM gaps")]
                self.assertEqual(gaps, ["other threads"] if program != self.ONE_AFTER_ANOTHER else [])

    def test_at_once(self):
        for options in ((), ("--every", "3")):
            self.check(self.AT_ONCE, ("--steps", "6", *options), 6)

    def test_one_after_another(self):
        self.check(self.ONE_AFTER_ANOTHER, ("--steps", "8"), 8)  # as many as have rows

    def test_another_one_takes_over(self):
        """The main thread has trained, and waits for another one that trains on."""
        self.check(self.TRAINING + """
        training = made(0)
        train("main", 2, *training)
        sleeping = torch.nn.Identity()
        sleeping.register_forward_hook(lambda *_: time.sleep(0.1))
        training[0].append(sleeping)
        thread = threading.Thread(target=train, args=("x", 40, *training))
        thread.start()
        thread.join()
        print(sorted(losses.items()))
        """, ("--steps", "6"), 6, ways=("native",))


@needs_torch2
class ThreadsOnTorch2(Threads):
    python = TORCH2


if __name__ == "__main__":
    unittest.main(verbosity=2)
