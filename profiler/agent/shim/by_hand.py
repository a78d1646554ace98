# SPDX-License-Identifier: MIT
"""Programs that change their parameters without torch.optim: a step ends where a forward follows a backward."""
import gc

import torch

SURE = 2  # backward passes without an Optimizer.step


class ByHand:
    def __init__(self):
        self.passed = 0      # backward passes since a step has ended
        self.certain = None  # whether the program does so; None: nobody knows as yet
        self.begun = False   # the first step is known to have ended

    def optimizer(self):
        """One of torch's has been seen at work; whether the program did without until now."""
        before, self.certain = self.certain, False
        return bool(before)

    def backward(self):
        """An outermost backward pass has ended; whether an update by hand follows."""
        self.passed += 1
        if self.certain is None and self.passed >= SURE:
            self.certain = not any(issubclass(type(each), torch.optim.Optimizer) for each in gc.get_objects())
        return bool(self.certain)

    def ends(self):
        """Whether a step ends with the forward that begins."""
        return bool(self.certain) and self.passed > 0

    def ended(self):
        """Whether it is the first that does: all before is of more than one step."""
        self.passed = 0
        first, self.begun = not self.begun, True
        return first
