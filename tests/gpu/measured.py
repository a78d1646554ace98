# SPDX-License-Identifier: MIT
"""What torch says of each step of a training, and what it has come to: for programs whose runs are compared bit by bit."""
import hashlib
import json
import time

import torch


def deterministic():
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False


def write_steps(path, model, device, count, step):
    """Runs `step`, which returns its loss, so many times; writes loss, time in ms, peak, most bytes from the driver and
    how often it was asked for some until then, and at the end a digest of the model's state."""
    cuda = torch.cuda if device == "cuda" else None
    steps = []
    for _ in range(count):
        if cuda:
            cuda.synchronize()
            cuda.reset_peak_memory_stats()
        begin = time.perf_counter()
        loss = step()
        if cuda:
            cuda.synchronize()
        steps.append({"ms": (time.perf_counter() - begin) * 1e3, "loss": loss.item().hex(),
                      "peak": cuda.max_memory_allocated() if cuda else None,
                      "reserved": cuda.max_memory_reserved() if cuda else None,
                      "segments": cuda.memory_stats().get("num_device_alloc") if cuda else None})
    digest = hashlib.sha256()
    for value in model.state_dict().values():
        digest.update(value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    with open(path, "w") as file:
        json.dump({"steps": steps, "digest": digest.hexdigest(), "torch": torch.__version__}, file)
