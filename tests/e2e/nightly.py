# SPDX-License-Identifier: MIT
"""Which end-to-end tests run at night only: more of what others show, on more programs or for longer."""
import os
import unittest

NIGHTLY = bool(os.environ.get("HIGHWATER_NIGHTLY"))


def nightly(test):
    """Marks a test, or all of a class."""
    test.is_nightly = True
    return test


def repeats(*names):
    """Marks inherited tests that run at night only. Those of the base class, on another torch, run each time."""
    def mark(case):
        case.repeated = frozenset(names)
        return case
    return mark


class _Loader(unittest.TestLoader):
    def getTestCaseNames(self, case):
        def at_night(name):
            marked = getattr(case, "is_nightly", False) or getattr(getattr(case, name), "is_nightly", False)
            return marked or name in getattr(case, "repeated", ())
        return [name for name in super().getTestCaseNames(case) if at_night(name) == NIGHTLY]


def main():
    """Runs the tests of the script: those marked if HIGHWATER_NIGHTLY is set, else the others."""
    unittest.main(testLoader=_Loader(), verbosity=2)
