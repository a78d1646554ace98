#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Records as on a GPU, with a stand-in for libcupti: what CUPTI delivers gets to its op, what it refuses is said."""
import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import unittest

from sessions import InFolder

GPU_RUN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gpu", "run")
BIN = os.environ.get("HIGHWATER_BIN", "build/release/bin")
HIGHWATER = os.path.join(BIN, "highwater")
LIBRARIES = os.path.join(BIN, "..", "lib")
STANDIN = os.path.abspath(os.path.join(LIBRARIES, "libstandin_cupti.so"))
REAL = next((path for path in ("/usr/local/cuda/lib64/libcupti.so.13",
                               "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13") if os.path.exists(path)), None)
MLP = """
import sys, time, torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(10, 20), torch.nn.ReLU(), torch.nn.Linear(20, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
print("ready", flush=True)
for step in range(int(sys.argv[1])):
    optimizer.zero_grad()
    loss = model(torch.randn(4, 10)).pow(2).mean()
    loss.backward()
    optimizer.step()
    time.sleep(float(sys.argv[2]))
print("loss", loss.item().hex(), flush=True)
"""
REFUSALS = {  # what the stand-in answers: (the error, its hint)
    "held:CUPTI for Nsight Systems": (
        "CUPTI is in use by Nsight Systems (nsys) (cuptiSubscribe_v2: error 39)",
        "CUPTI serves one profiler at a time: end that one, or record without it"),
    "held:CUPTI for ncu": (
        "CUPTI is in use by Nsight Compute (ncu) (cuptiSubscribe_v2: error 39)",
        "CUPTI serves one profiler at a time: end that one, or record without it"),
    "held:CUPTI for Kineto": (
        "CUPTI is in use by torch.profiler (Kineto) (cuptiSubscribe_v2: error 39)",
        "CUPTI serves one profiler at a time: end that one, or record without it"),
    "held:": (
        "CUPTI is in use by another profiler, such as nsys, ncu or torch.profiler (Kineto)"
        " (cuptiSubscribe_v2: error 39)",
        "CUPTI serves one profiler at a time: end that one, or record without it"),
    "privileges": (
        "this user may not use the GPU's profiling interface (cuptiSubscribe_v2: error 35)",
        "run as root, or have the administrator load the driver with NVreg_RestrictProfilingToAdminUsers=0"),
    "old-driver": (
        "the NVIDIA driver is too old for this CUPTI (cuptiSubscribe_v2: error 15)",
        "update the driver, or use a CUPTI of the driver's own CUDA version"),
    "no-driver": (
        "there is no NVIDIA driver (cuptiSubscribe_v2: error 999)",
        "record on a machine with an NVIDIA GPU, or leave --gpu out"),
    "unsupported": (
        "CUPTI does not support this GPU as it is set up (cuptiSubscribe_v2: error 43)",
        "leave --gpu out: ops and tensors are recorded without CUPTI"),
    "fails": (
        "CUPTI failed (cuptiSubscribe_v2: error 8)",
        "leave --gpu out: ops and tensors are recorded without CUPTI")}
# What is refused only when kernels are asked for reads the same.
REFUSALS.update({"enable:" + mode: (REFUSALS[mode][0].replace("cuptiSubscribe_v2", "cuptiActivityEnable"),
                                    REFUSALS[mode][1])
                 for mode in ("privileges", "old-driver", "no-driver", "unsupported", "fails")})


def gpu_run():
    """tests/gpu/run as a module."""
    loader = importlib.machinery.SourceFileLoader("gpu_run", GPU_RUN)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_run", loader))
    loader.exec_module(module)
    return module


@unittest.skipUnless(os.path.exists(STANDIN), "no stand-in for libcupti; enable with: the CUDA toolkit's headers")
class Gpu(InFolder):
    python = "/usr/bin/python3"

    def setUp(self):
        super().setUp()
        self.train = self.script(MLP)
        self.mode = os.path.join(self.folder, "mode")

    def environment(self, mode, **others):
        with open(self.mode, "w") as file:
            file.write(mode)
        return {**os.environ, "HIGHWATER_CUPTI": STANDIN, "STANDIN_CUPTI": self.mode, **others}

    def record(self, environment, *options, steps=4):
        return subprocess.run(
            [HIGHWATER, "record", "--json", "-o", self.session, "--gpu", "--warmup", "1", "--steps", "2", *options,
             "--", self.python, self.train, str(steps), "0"],
            capture_output=True, text=True, timeout=120, env=environment)

    def attach(self, process, mode, *options):
        self.environment(mode)
        return subprocess.run([HIGHWATER, "attach", "-o", self.session, "--steps", "2", *options, str(process.pid)],
                              capture_output=True, text=True, timeout=60)

    def refused(self, done, what, hint):
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn(f"highwater: error: {what}\nhint: {hint}\n", done.stderr)

    def test_kernels_copies_memory_and_ranges(self):
        for way in ("native", "python"):
            self.session = os.path.join(self.folder, way + ".hws")
            done = self.record(self.environment("segments", HIGHWATER_CAPTURE=way))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.query("SELECT * FROM gaps"), [])
            # One kernel an op, whether its id was pushed or its thread and time tell it.
            (ops,), = self.query("SELECT COUNT(*) FROM ops")
            (kernels, of_ops, names), = self.query("SELECT COUNT(*), COUNT(DISTINCT op), MIN(name) FROM kernels"
                                                   " WHERE op IS NOT NULL")
            self.assertEqual((of_ops, names), (ops, "_Z6kernelPf"))
            self.assertGreaterEqual(kernels, ops)  # an op around others begins again after each
            # The device's clock is 5 s ahead of the host's.
            clock, = (json.loads(text) for text, in self.query("SELECT value FROM meta WHERE key = 'device_clock'"))
            self.assertAlmostEqual(clock["offset_ns"], -5e9, delta=1e6)
            self.assertLess(abs(clock["drift_ppb"]), 1e6)
            late, = self.query("SELECT COUNT(*) FROM kernels JOIN ops ON ops.id = op"
                               " WHERE kernels.begin_ns < ops.begin_ns OR kernels.begin_ns > ops.begin_ns + 1e9")
            self.assertEqual(late, (0,))
            self.assertEqual(self.query("SELECT COUNT(*) FROM ops WHERE device_ns IS NULL"), [(0,)])
            self.assertGreater(self.query("SELECT COUNT(*) FROM copies WHERE bytes = 4096 AND kind = 'HtoD'")[0][0], 0)
            self.assertEqual(self.query("SELECT kind, ordinal, name, capacity_bytes FROM devices"),
                             [("cuda", 0, "Stand-in GPU", 80 << 30)])
            self.assertEqual(self.query("SELECT DISTINCT kind, name FROM ranges"), [("nvtx", "a range")])
            peaks = dict(self.query("SELECT name, MAX(maximum) FROM series JOIN series_buckets ON series = series.id"
                                    " GROUP BY name"))
            self.assertEqual(peaks["device 0 CUPTI"], 9_600_000)
            self.assertEqual(peaks["host CUPTI"] % (2 << 20), 0)
            self.assertEqual(peaks["device 0 reserved"], (20 << 20) + (2 << 20))
            # The figures that tests/gpu/run compares with torch's.
            table = gpu_run()
            of_steps = table.kernels_of_steps(self.session)
            self.assertEqual((len(of_steps), sum(count for count, _, _ in of_steps)), (2, kernels))
            # Both ends of each are rounded to the host's clock.
            self.assertAlmostEqual(sum(ns for _, _, ns in of_steps), 1000 * kernels, delta=kernels)
            self.assertEqual(table.highest(self.session, "device 0 CUPTI"), 9_600_000)

    def start(self, mode):
        process = subprocess.Popen([self.python, self.train, "100000", "0.002"], stdout=subprocess.PIPE, text=True,
                                   env=self.environment(mode))
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def test_attached_and_each_refusal(self):
        process = self.start("works")
        self.assertEqual(self.attach(process, "works", "--gpu").returncode, 0)
        (ops,), = self.query("SELECT COUNT(*) FROM ops")
        self.assertEqual(self.query("SELECT COUNT(DISTINCT op) FROM kernels"), [(ops,)])
        os.remove(self.session)
        for mode, (what, hint) in REFUSALS.items():
            self.refused(self.attach(process, mode, "--gpu"), what, hint)
            self.assertFalse(os.path.exists(self.session))
        done = self.attach(process, "starves", "--gpu")
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertRegex(done.stderr, r"highwater: error: CUPTI delivered no records although the program launched \d+ "
                         r"kernels: another profiler took them\nhint: end torch\.profiler \(Kineto\) or whatever else "
                         r"uses CUPTI in the program, and record again\n")
        os.remove(self.session)  # it holds the steps all the same
        # What CUPTI loses is a gap; what nobody asked for is not missed.
        self.assertEqual(self.attach(process, "lossy", "--gpu").returncode, 0)
        why = [why for why, in self.query("SELECT why FROM gaps WHERE what = 'GPU records'")]
        self.assertIn("CUPTI dropped 12 of them: the buffers were full", why)
        self.assertTrue(any("have no times" in each for each in why), why)
        os.remove(self.session)
        self.assertEqual(self.attach(process, "privileges").returncode, 0)
        self.assertIsNone(process.poll())

    def test_no_library(self):
        missing = os.path.join(self.folder, "libcupti.so")
        done = self.record(self.environment("works", HIGHWATER_CUPTI=missing))
        self.refused(done, f"CUPTI was not found (looked for {missing})",
                     "install the CUDA toolkit's CUPTI, or name its libcupti.so in HIGHWATER_CUPTI")
        self.assertIn("loss ", done.stderr)

    @unittest.skipUnless(REAL and not os.path.exists("/proc/driver/nvidia/version"), "a driver, or no CUPTI")
    def test_the_real_library_without_a_driver(self):
        done = self.record(self.environment("works", HIGHWATER_CUPTI=REAL))
        self.refused(done, "there is no NVIDIA driver (cuptiSubscribe_v2: error 999)",
                     "record on a machine with an NVIDIA GPU, or leave --gpu out")

    @unittest.skipIf(os.path.exists("/proc/driver/nvidia/version"), "a driver")
    def test_no_library_is_asked_where_there_is_no_driver(self):
        environment = self.environment("works")
        del environment["HIGHWATER_CUPTI"]
        done = self.record(environment)
        self.refused(done, "there is no NVIDIA driver",
                     "record on a machine with an NVIDIA GPU, or leave --gpu out")


class Table(unittest.TestCase):
    """Of tests/gpu/run."""

    def test_rows_that_fail_skip_and_break_are_all_in_it(self):
        run = gpu_run()

        class Machine:
            left = staticmethod(lambda: 100.0)

        def skips(_):
            raise run.Skip("no reason")

        rows = [("counts", *run.evaluate(lambda _: run.same("kernels", 102, 100, 0.02), None, Machine)),
                ("more", *run.evaluate(lambda _: run.same("kernels", 103, 100, 0.02), None, Machine)),
                ("absent", *run.evaluate(skips, None, Machine)),
                ("broken", *run.evaluate(lambda _: {}["key"], None, Machine))]
        self.assertEqual(run.table(rows, "a GPU").splitlines(), [
            "a GPU", "",
            "counts  pass     kernels: session 102, torch 100",
            "more    fail     kernels: session 103, torch 100",
            "absent  skipped  no reason",
            "broken  fail     KeyError: 'key'", "",
            "1 pass, 2 fail, 1 skipped"])

    @unittest.skipIf(os.path.exists("/proc/driver/nvidia/version"), "there is a GPU: run tests/gpu/run")
    def test_without_a_gpu_it_says_so(self):
        done = subprocess.run([sys.executable, GPU_RUN], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 77)
        self.assertIn("error: no NVIDIA driver is loaded here\nhint: run it on a machine with an NVIDIA GPU", done.stderr)
        self.assertIn("recorded by launch", done.stdout)
        self.assertIn("0 pass, 0 fail, 20 skipped", done.stdout)
        self.assertIn("GPT, autocast: losses and parameters as alone", done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
