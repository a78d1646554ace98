# SPDX-License-Identifier: MIT
"""Which module runs, for the capture."""
from _thread import get_ident

import torch
from _highwater.module_calls import ModuleCalls


class Modules:
    def __init__(self, hooks):
        self.hooks = hooks  # install.Hooks
        self.calls = ModuleCalls(self.before_forward, self.after_forward, self.lose)

    def watch(self, eagerly=False):
        """Not watched, modules cost nothing: for as long as it does not matter which of them runs."""
        if self.hooks.installed:
            self.calls.watch(eagerly)

    def rest(self):
        self.calls.rest()

    def unwatch(self):
        self.calls.unwatch()

    @property
    def watching(self):
        return self.calls.watching

    def lose(self):
        capture = self.hooks.capture
        if capture.concerns() and not capture.run_eagerly() and not capture.steps.active:
            capture.await_forward()

    def before_forward(self, module):
        """A module within another one, seen before in this step, is the rule: it takes the short way. The phase is that
        of the module around it."""
        capture = self.hooks.capture
        layers = capture.layers
        layer = layers.inners.get(id(module))
        stack = layers.stack
        if layer is None or not stack or capture.quick != get_ident() or stack[0][0] == id(module) or \
                not capture.steps.active:
            self.hooks.guard(self.enter, module)
        else:
            stack.append((id(module), layer))
            capture.context[0] = layer

    def after_forward(self, module):
        capture = self.hooks.capture
        stack = capture.layers.stack
        if len(stack) > 1 and stack[-1][0] == id(module) and capture.quick == get_ident():
            stack.pop()
            capture.context[0] = stack[-1][1]
        elif self.hooks.installed and capture.concerns():
            capture.layers.leave(module)
            capture.moved()

    def enter(self, module):
        capture = self.hooks.capture
        # Within a backward pass a checkpoint runs its forward again; a loss comes after the forward.
        trains = torch.is_grad_enabled() and not capture.gradients.depth
        begins = trains and not isinstance(module, torch.nn.modules.loss._Loss)
        if not (capture.trainer.take() if trains else capture.trainer.ident):
            return
        ends = begins and capture.by_hand.ends()
        if ends or not capture.steps.resting():
            capture.layers.enter(module, capture.registry)
            capture.moved()
        if ends:
            capture.end_by_hand()
        if begins:
            capture.forward_by_module()
        if capture.steps.resting():
            self.rest()
