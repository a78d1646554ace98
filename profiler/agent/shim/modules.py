# SPDX-License-Identifier: MIT
"""Sees modules being called: by torch's global hooks or, where modules run by the hundred a step and the
hooks' long way through torch is felt, in the place of Module.__call__."""
from _thread import get_ident

import torch
from torch.nn.modules import module as framework

NOT_AT_ALL, HOOKS, CALLS = range(3)

# A compiler that follows the program into what is called here is to find nothing: what it cannot follow may end the
# program (torch.compile's fullgraph). It takes this for a constant.
compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None) or (lambda: False)


class Modules:
    def __init__(self, hooks):
        self.hooks = hooks  # install.Hooks
        self.how = NOT_AT_ALL
        self.handles = []

    def watch(self, how):
        """Not watched, modules cost nothing: for as long as it does not matter which of them runs. CALLS
        only between two calls of modules: one of them does not see what the other has begun."""
        if how == self.how or how != NOT_AT_ALL and not self.hooks.installed:
            return
        for handle in self.handles:
            handle.remove()
        self.handles = []
        if self.how == CALLS and framework.Module.__call__ is self.ours:
            framework.Module.__call__ = self.theirs
        self.how = how
        if how == HOOKS:
            self.handles = [framework.register_module_forward_pre_hook(self.before_forward),
                            framework.register_module_forward_hook(self.after_forward)]
        elif how == CALLS:
            self.theirs = framework.Module.__call__
            self.ours = framework.Module.__call__ = self.watched(self.theirs)

    def watched(self, call):
        """A module within another one, seen before in this step, is the rule: it takes the short way. The
        phase is that of the module around it."""
        capture = self.hooks.capture
        layers, steps, context, inners = capture.layers, capture.steps, capture.context, capture.layers.inners

        def __call__(module, *arguments, **named):
            if compiling():
                return call(module, *arguments, **named)
            key = id(module)
            layer = inners.get(key)
            stack = layers.stack
            if layer is None or not stack or capture.quick != get_ident() or stack[0][0] == key or not steps.active:
                self.before_forward(module)
                try:
                    return call(module, *arguments, **named)
                finally:
                    self.after_forward(module)
            stack.append((key, layer))
            context[0] = layer
            try:
                return call(module, *arguments, **named)
            finally:
                if len(stack) > 1 and stack[-1][0] == key and capture.quick == get_ident():
                    stack.pop()
                    context[0] = stack[-1][1]
                else:
                    self.after_forward(module)

        return __call__

    def before_forward(self, module, *_):
        if compiling():
            return
        self.hooks.guard(self.enter, module)

    def after_forward(self, module, *_):
        if compiling():
            return
        capture = self.hooks.capture
        if self.hooks.installed and capture.concerns():
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
            self.watch(NOT_AT_ALL)
