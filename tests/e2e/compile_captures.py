#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Compiles the native capture for the frameworks of the tests before any of them waits for it: while their training
programs keep the processors busy it takes ten times as long. Where it cannot be had, the tests say so."""
import os
import subprocess

from torch2 import TORCH2

HIGHWATER = os.path.join(os.environ["HIGHWATER_BIN"], "highwater")

compilations = [subprocess.Popen([HIGHWATER, "doctor", "--build", "capture", python])
                for python in ("/usr/bin/python3", TORCH2) if python]
for compilation in compilations:
    compilation.wait()
