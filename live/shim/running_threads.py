# SPDX-License-Identifier: MIT
"""Threads of Python's that ran before the runtime came. They see what the thread that trains drops, so each has to
enter, which only it can do itself: it gets a profile function, which is called at its next call or return and goes."""
import ctypes
import sys
import threading

# Py_tracefunc of Include/cpython/pystate.h: object, frame, event, argument.
CALLED = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)


def profiled():
    """Whether the program has profile functions of its own, which would be lost."""
    return sys.getprofile() is not None or getattr(threading, "_profile_hook", None) is not None


class RunningThreads:
    def __init__(self, enter):
        self.enter = enter
        self.called = CALLED(self.enter_in_c)  # as long as a thread may call it

    def tell(self):
        """Every thread but this one enters; before Python 3.9, and beside a profiler of the program's, none does."""
        if threading.active_count() < 2 or profiled() or sys.implementation.name != "cpython":
            return
        if hasattr(threading, "setprofile_all_threads"):
            own = threading.get_ident()
            threading.setprofile_all_threads(lambda *_: self.enter_in_python(own))
            threading.setprofile(None)
            sys.setprofile(None)
        elif hasattr(ctypes.pythonapi, "_PyEval_SetProfile"):
            self.tell_in_c()

    def enter_in_python(self, own):
        sys.setprofile(None)
        if threading.get_ident() != own:
            self.enter()

    def enter_in_c(self, *_):
        ctypes.pythonapi.PyEval_SetProfile(None, None)
        self.enter()
        return 0

    def tell_in_c(self):
        api = ctypes.pythonapi
        set_profile = api._PyEval_SetProfile
        pointers = (("PyInterpreterState_Get", []), ("PyInterpreterState_ThreadHead", [ctypes.c_void_p]),
                    ("PyThreadState_Next", [ctypes.c_void_p]), ("PyThreadState_Get", []))
        for name, arguments in pointers:
            function = getattr(api, name)
            function.restype, function.argtypes = ctypes.c_void_p, arguments
        set_profile.argtypes = [ctypes.c_void_p, CALLED, ctypes.py_object]
        own, thread = api.PyThreadState_Get(), api.PyInterpreterState_ThreadHead(api.PyInterpreterState_Get())
        while thread:
            if thread != own:
                set_profile(thread, self.called, None)
            thread = api.PyThreadState_Next(thread)
