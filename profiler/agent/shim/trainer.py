# SPDX-License-Identifier: MIT
"""Whose training is watched: a program may train in several threads at once, and in one after another."""
import _thread
import os
import sys
import time
import weakref

import torch

# Without a sign of the one that is watched.
PATIENCE_STEPS = 8  # of others
PATIENCE_SECONDS = 2
FOLDERS = tuple(os.path.join(os.path.dirname(torch.__file__), folder, "")
                for folder in ("autograd", "nn", "optim"))


class Mark:
    """Lies in a thread's own storage, and goes with it."""


class Trainer:
    """The first thread that does anything with gradients, for as long as it lives and trains.

    `turn` is of the one that is watched, as long as it is in a hook of ours, or of one that takes over.
    """

    def __init__(self, lost):
        """`lost`: called when the thread has gone, on any thread."""
        self.ident = 0      # 0: none yet
        self.lost = lost
        self.process = os.getpid()
        self.turn = _thread.RLock()
        self.local = _thread._local()
        self.mark = None
        self.steps = 0      # Optimizer.steps of its own
        self.elsewhere = 0  # those of others, since it was last seen to train
        self.seen = 0.0     # when that was
        self.others = False  # whether other threads were seen to train

    def take(self):
        """Whether it is the calling thread, which trains."""
        me = _thread.get_ident()
        if self.ident != me:
            if self.ident:
                return False
            self.local.mark = Mark()
            self.mark = weakref.ref(self.local.mark, self.gone)
            self.ident, self.steps = me, 0
            self.note()
        elif self.steps:
            self.note()
        return True

    def note(self):
        self.elsewhere = 0
        self.seen = time.monotonic()

    def is_other(self):
        return self.ident not in (0, _thread.get_ident())

    def stepped(self):
        self.steps += 1
        self.note()

    def stepped_elsewhere(self):
        """Whether others train, and it does not."""
        self.others = True
        self.elsewhere += 1
        return self.elsewhere >= PATIENCE_STEPS and time.monotonic() > self.seen + PATIENCE_SECONDS

    def has_others(self):
        """Whether another thread has trained, or is within a model, a backward or an optimizer."""
        if self.others or _thread._count() == 0:
            return self.others
        frames = sys._current_frames()
        del frames[_thread.get_ident()]  # which would hold itself, and all that its callers hold
        for frame in frames.values():
            while frame is not None and not self.others:
                self.others = frame.f_code.co_filename.startswith(FOLDERS)
                frame = frame.f_back
        return self.others

    def gone(self, mark):
        if os.getpid() != self.process:
            return  # a forked child, where all other threads have gone, and one of them may have the turn for ever
        with self.turn:
            if mark is self.mark:
                self.lost()

    def let_go(self):
        self.mark = None
        self.ident = 0
