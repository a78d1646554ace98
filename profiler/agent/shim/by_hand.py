# SPDX-License-Identifier: MIT
"""Programs without an optimizer of torch's, which update their parameters by hand or not at all: a step ends where a
forward follows a backward."""
import gc

import torch

class ByHand:
    def __init__(self):
        self.passed = 0      # backward passes since a step has ended
        self.certain = None  # whether the program is one; None: it has not been looked at
        self.told = False    # that it is

    def optimizer(self):
        """One of torch's is at work; whether the program did without until now."""
        before, self.certain = self.certain, False
        return bool(before)

    def backward(self):
        """An outermost backward pass has ended; whether the next forward ends the step."""
        self.passed += 1
        if self.certain is None:
            self.certain = not any(issubclass(type(each), torch.optim.Optimizer) for each in gc.get_objects())
        return bool(self.certain)

    def ends(self):
        """Whether a step ends with the forward that begins."""
        return bool(self.certain) and self.passed > 0

    def remains(self, any_before):
        """Whether what has run since the last step's end is one, now that the program ends."""
        return self.passed > 0 and (bool(self.certain) or not any_before)

    def ended(self):
        """Whether it is the first that does."""
        self.passed = 0
        first, self.told = not self.told, True
        return first
