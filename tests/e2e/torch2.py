# SPDX-License-Identifier: MIT
"""Where the tests find a current torch 2.x, which not every machine has."""
import glob
import os
import unittest

_CACHE = os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))

# An interpreter, or None.
TORCH2 = os.environ.get("HIGHWATER_TORCH2") or next(iter(sorted(glob.glob(_CACHE + "/highwater/torch-2*/python3"))), None)

needs_torch2 = unittest.skipUnless(TORCH2, "no torch 2.x; enable with: scripts/setup_torch2")
