# SPDX-License-Identifier: MIT
"""Shared libraries that go along with programs to machines that may lack them."""
import os
import re
import subprocess
import sys

# Of every Linux with Python, of torch, or our own.
PRESENT = re.compile(r"(ld-linux|libc\.|libm\.|libdl\.|libpthread\.|librt\.|libstdc\+\+|libgcc_s|linux-vdso|libtorch|libc10"
                     r"|libcu|libnv|libgomp|libhighwater)")


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def needed(program):
    """Shared libraries that travel with a program: names and where they lie. What Qt's need is Qt's affair."""
    beside = os.path.join(os.path.dirname(os.path.dirname(program)), "lib")
    known = dict(re.findall(r"^\s*(\S+) \(.*x86-64.*\) => (\S+)", output("/sbin/ldconfig", "-p"), re.MULTILINE))
    found, todo = {}, [program]
    while todo:
        for name in re.findall(r"^\s*NEEDED\s+(\S+)", output("objdump", "-p", todo.pop()), re.MULTILINE):
            if PRESENT.match(name) or name in found:
                continue
            here = os.path.join(beside, name)
            found[name] = here if os.path.exists(here) else known.get(name)
            if found[name] is None:
                sys.exit(f"error: {program} needs {name}, which is not here\nhint: gather it on the system that it was built on")
            if not name.startswith("libQt6"):
                todo.append(found[name])
    return found
