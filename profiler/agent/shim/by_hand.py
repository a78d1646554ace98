# SPDX-License-Identifier: MIT
"""Programs of whose updates nothing tells: they are made by hand, or by an optimizer that is compiled. A step ends where a
forward follows a backward, and an update, where there are optimizers."""
import gc
import weakref

import torch


class ByHand:
    def __init__(self):
        self.passed = 0         # backward passes since a step has ended
        self.certain = None     # whether the program has no optimizer of torch's; None: it has not been looked at
        self.seen = False       # one of torch's has told of a step
        self.parameters = []    # of those that have not told of any, weakly
        self.versions = []      # of the parameters after the first of the backward passes
        self.told = False       # that the program is one

    def optimizer(self):
        """One of torch's is at work; whether the program did without until now."""
        before, self.certain = self.certain, False
        return bool(before)

    def stepped(self):
        """One of torch's has made a step, and told of it."""
        self.seen = True
        self.passed = 0

    def backward(self):
        """An outermost backward pass has ended."""
        self.passed += 1
        if self.certain is None:
            optimizers = [each for each in gc.get_objects() if issubclass(type(each), torch.optim.Optimizer)]
            self.certain = not optimizers
            self.parameters = [weakref.ref(parameter) for each in optimizers for group in each.param_groups
                               for parameter in group["params"] if not parameter.is_inference()]
        if not self.seen and self.passed == 1:
            self.versions = self.present()

    def may_end(self):
        """Whether the next forward may end the step."""
        return bool(self.certain) or not self.seen

    def present(self):
        """Versions of the parameters, which a compiled optimizer counts on as others do."""
        return [getattr(weak(), "_version", 0) for weak in self.parameters]

    def ends(self):
        """Whether a step ends with the forward that begins."""
        if not self.passed:
            return False
        return bool(self.certain) or (not self.seen and self.versions != self.present())

    def remains(self, any_before):
        """Whether what has run since the last step's end is one, now that the program ends."""
        return self.ends() or (self.passed > 0 and not any_before)

    def ended(self):
        """Whether it is the first that does."""
        self.passed = 0
        first, self.told = not self.told, True
        return first
