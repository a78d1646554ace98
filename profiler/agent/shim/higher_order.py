# SPDX-License-Identifier: MIT
"""Operators over functions (torch.cond, flex_attention): they look for a kernel in Python by the highest dispatch key, and
know nothing of the one by which ops are seen."""
import torch


def pass_over(patches):
    """Those that there are, and those that are still to come, go on to the keys below."""
    kind = getattr(torch._ops, "HigherOrderOperator", None)
    parse = getattr(torch._C, "_parse_dispatch_key", None)
    if kind is None or parse is None or not hasattr(kind, "fallthrough"):
        return
    key = parse("Fake")  # see kKey of native/observer.h
    for operator in list(getattr(torch._ops, "_higher_order_ops", {}).values()):
        operator.fallthrough(key)
    patches.stand_for(kind, "__init__", lambda operator, *_, **__: operator,
                      lambda operator, done: operator.fallthrough(key) if done else None)
