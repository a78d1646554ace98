# SPDX-License-Identifier: MIT
"""Tensors of which each rank holds a part, as FSDP's parameters are (`torch.distributed.tensor.DTensor`)."""
import torch

PLAIN = (torch.Tensor, torch.nn.Parameter)


def local(tensor):
    """What has the bytes: the tensor itself, or the part that is here."""
    return tensor if type(tensor) in PLAIN else getattr(tensor, "_local_tensor", tensor)
