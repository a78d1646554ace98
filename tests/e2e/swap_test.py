#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""torch.utils.swap_tensors, which refuses tensors to which anybody has a weak reference, works in recorded steps."""
import os
import subprocess
import unittest

from sessions import HIGHWATER, InFolder
from torch2 import TORCH2, needs_torch2

SWAPS = """
    import torch
    torch.__future__.set_swap_module_params_on_conversion(True)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.Tanh(), torch.nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    kind = torch.float32
    for step in range(6):
        loss = model(torch.randn(16, 32).to(kind)).square().mean()
        one, other = torch.ones(3) * 1, torch.ones(3) * 2
        torch.utils.swap_tensors(one, other)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss.item().hex(), one.sum().item(), flush=True)
        del loss
        kind = torch.float64 if step % 2 == 0 else torch.float32
        optimizer.zero_grad()
        model.to(kind)
    """


@needs_torch2
class Swaps(InFolder):
    def test_in_recorded_steps(self):
        script = self.script(SWAPS)
        plain = subprocess.run([TORCH2, script], capture_output=True, text=True, timeout=300, check=True).stdout
        for way in ("native", "python"):
            with self.subTest(way):
                if os.path.exists(self.session):
                    os.remove(self.session)
                done = subprocess.run([HIGHWATER, "record", "--steps", "4", "--warmup", "1", "-o", self.session, "--", TORCH2,
                                       script], capture_output=True, text=True, timeout=300,
                                      env={**os.environ, "HIGHWATER_CAPTURE": way})
                self.assertEqual((done.returncode, done.stdout), (0, plain), done.stderr)
                parameters = "SELECT COUNT(*) FROM storages WHERE category = 'parameter' AND bytes IN (4096, 8192)"
                self.assertGreater(self.query(parameters)[0][0], 1, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
