# SPDX-License-Identifier: MIT
"""Shared libraries that go along with programs to machines that may lack them."""
import re
import subprocess

# Of every Linux with Python, of torch, or our own.
PRESENT = re.compile(r"(ld-linux|libc\.|libm\.|libdl\.|libpthread\.|librt\.|libstdc\+\+|libgcc_s|linux-vdso|libtorch|libc10"
                     r"|libcu|libnv|libgomp|libhighwater)")


def needed(program):
    """Shared libraries that travel with a program: names and where they lie."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    found = dict(re.findall(r"^\s*(\S+) => (/\S+)", listed, re.MULTILINE))
    return {name: path for name, path in found.items() if not PRESENT.match(name)}
