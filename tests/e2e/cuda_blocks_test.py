#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Events of the CUDA allocator against the headers and libraries of a framework that is built for CUDA."""
import glob
import os
import subprocess
import sys
import tempfile

from torch2 import TORCH2

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def skip(why):
    print("skipped:", why)
    sys.exit(77)


def headers(packages):
    """As profiler/attach/native_capture.cpp finds them."""
    folders = [*sorted(glob.glob(packages + "/nvidia/cu*/include"), reverse=True), "/usr/local/cuda/include",
               *sorted(glob.glob("/usr/local/cuda-*/include"), reverse=True), packages + "/triton/backends/nvidia/include"]
    return next((folder for folder in folders if os.path.exists(folder + "/cuda_runtime_api.h") and
                 os.path.exists(folder + "/crt/host_defines.h")), None)


def main():
    if not TORCH2:
        skip("there is no torch 2.x (scripts/setup_torch2)")
    root = subprocess.run([TORCH2, "-c", "import torch; print(torch.__path__[0])"], check=True, capture_output=True,
                          text=True).stdout.strip()
    libraries = root + "/lib"
    if not os.path.exists(libraries + "/libc10_cuda.so"):
        skip("this torch is not built for CUDA")
    cuda = headers(os.path.dirname(root))
    if cuda is None:
        skip("there are no headers of CUDA")
    # Of CUDA itself, only what the framework's own libraries need: it is not called.
    runtime = glob.glob(os.path.dirname(root) + "/nvidia/*/lib/libcudart.so*") + glob.glob("/usr/local/cuda*/lib64/libcudart.so.*")
    if not runtime:
        skip("there is no CUDA runtime")
    with open(root + "/include/ATen/ATen.h") as file:
        standard = "c++20" if "C++20 or later" in file.read() else "c++17"
    with tempfile.TemporaryDirectory() as folder:
        program = folder + "/cuda_blocks"
        subprocess.run(["c++", "-std=" + standard, "-O0", "-w", "-DNDEBUG", "-DHIGHWATER_CUDA", HERE + "/cuda_blocks.cpp",
                        "-I" + ROOT + "/profiler/agent/native", "-I" + root + "/include",
                        "-I" + root + "/include/torch/csrc/api/include", "-I" + cuda,
                        libraries + "/libc10_cuda.so", libraries + "/libc10.so", runtime[0], "-Wl,--allow-shlib-undefined",
                        "-Wl,-rpath," + libraries, "-o", program], check=True)
        folders = [os.path.dirname(path) for path in runtime]
        done = subprocess.run([program], capture_output=True, text=True, check=False,
                              env={**os.environ, "LD_LIBRARY_PATH": ":".join(folders)})
        print(done.stdout, done.stderr)
        if done.returncode != 0 or done.stdout != "as told\n":
            sys.exit(1)


if __name__ == "__main__":
    main()
