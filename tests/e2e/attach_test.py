#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Attaches to training processes that run already and that know nothing of Highwater.

HIGHWATER_CYCLES: how often each of three scripts is attached to in a row (default: one script, twice).
"""
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

import nightly
from torch2 import TORCH2, needs_torch2

HIGHWATER = os.path.abspath(os.path.join(os.environ.get("HIGHWATER_BIN", "build/release/bin"), "highwater"))
TRAINING = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "training")
CYCLES = int(os.environ.get("HIGHWATER_CYCLES", "2"))
SCRIPTS = [["lstm.py", "--batch", "2"], ["transformer.py", "--batch", "1", "--length", "16"],
           ["resnet.py", "--batch", "2", "--size", "16"]][:3 if "HIGHWATER_CYCLES" in os.environ else 1]
MANY = "1000000"
NOBODY = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")

MLP = """
import sys, threading, time, torch
def train(steps):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(10, 20), torch.nn.ReLU(), torch.nn.Linear(20, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for step in range(steps):
        optimizer.zero_grad()
        loss = model(torch.randn(4, 10)).pow(2).mean()
        loss.backward()
        optimizer.step()
        print(step, loss.item().hex(), flush=True)
        time.sleep(0.002)
steps, where = int(sys.argv[1]), sys.argv[2]
if where == "main":
    train(steps)
else:
    thread = threading.Thread(target=train, args=(steps,), daemon=True)
    thread.start()
    if where == "join":
        thread.join()
    else:
        time.sleep(1000)
"""

# Ever larger batches, until one does not fit.
GROWS = """
import resource, time, torch
model = torch.nn.Sequential(torch.nn.Linear(4, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
used = int(open("/proc/self/statm").read().split()[0]) * 4096
limit = used + (400 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
batch = 100
while True:
    optimizer.zero_grad()
    model(torch.randn(int(batch), 4)).sum().backward()
    optimizer.step()
    print(int(batch), flush=True)
    time.sleep(0.2)
    batch *= 1.1
"""


# Of another user, in a container: says that it is recorded, by a process that knows nothing of it.
FORGER = """
import fcntl, os, shutil, sys, time
kind, holder, ready, user = sys.argv[1:]
folder = "/tmp/highwater-" + user
shutil.rmtree(folder, ignore_errors=True)
os.mkdir(folder, 0o700)
path = folder + "/" + "".join(filter(str.isdigit, os.readlink("/proc/self/ns/pid"))) + "-" + str(os.getpid())
if kind == "claim":
    file = open(path, "w")
    fcntl.flock(file, fcntl.LOCK_EX)
    print(holder, end="", file=file, flush=True)
else:
    os.mkfifo(path)
open(ready, "w").close()
time.sleep(100)
"""


class Attaching(unittest.TestCase):
    python = "/usr/bin/python3"

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.mlp = os.path.join(self.folder, "train.py")
        with open(self.mlp, "w") as file:
            file.write(MLP)

    def start(self, *command, steps=2):
        """A training process of its own that has printed its first losses."""
        self.output = os.path.join(self.folder, f"losses{len(os.listdir(self.folder))}")
        with open(self.output, "w") as output:
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        self.addCleanup(self.end, process)
        self.wait_for(lambda: len(self.losses()) >= steps or process.poll() is not None)
        self.assertIsNone(process.poll(), self.losses())
        return process

    def start_mlp(self, where="main"):
        return self.start(self.python, self.mlp, MANY, where)

    @staticmethod
    def end(process):
        process.kill()
        process.wait()

    def wait_for(self, condition, seconds=120):
        deadline = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), deadline, "waited too long")
            time.sleep(0.02)

    def losses(self):
        with open(self.output) as output:
            text = output.read()
        return text[:text.rfind("\n") + 1].splitlines()

    def goes_on(self, process):
        before = len(self.losses())
        self.wait_for(lambda: len(self.losses()) > before + 1 or process.poll() is not None)
        self.assertIsNone(process.poll(), self.losses())

    def step_cost(self, process, steps=20):
        """Milliseconds of processor time of a step."""
        def used():
            with open(f"/proc/{process.pid}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK"), len(self.losses())
        began, first = used()
        self.wait_for(lambda: len(self.losses()) >= first + steps or process.poll() is not None)
        self.assertIsNone(process.poll(), self.losses())
        ended, last = used()
        return (ended - began) / (last - first)

    def path(self, name="s.hws"):
        return os.path.join(self.folder, name)

    def attach(self, pid, *options, name="s.hws", prefix=(), environment=None, program=HIGHWATER):
        return subprocess.run(
            [*prefix, program, "attach", str(pid), "--json", "-o", self.path(name), *options],
            capture_output=True, text=True, timeout=300, env=environment)

    def attached(self, pid, *options, name="s.hws", program=HIGHWATER):
        done = self.attach(pid, *options, name=name, program=program)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def in_background(self, pid, *options, name="s.hws", **how):
        """An attach that has recorded a step."""
        recorder = subprocess.Popen(
            [HIGHWATER, "attach", str(pid), "-o", self.path(name), *options],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **how)
        self.addCleanup(recorder.stderr.close)
        self.addCleanup(self.end, recorder)
        told = []
        for line in recorder.stderr:
            told.append(line)
            if line.startswith("highwater: step "):
                return recorder
        self.fail("no step was recorded: " + "".join(told))

    def copy_of_the_build(self):
        """Its highwater; everybody may use it, wherever the build itself lies."""
        copy = os.path.join(self.folder, "copy")
        shutil.copytree(os.path.join(os.path.dirname(HIGHWATER), "..", "lib"), os.path.join(copy, "lib"), symlinks=True)
        os.mkdir(os.path.join(copy, "bin"))
        program = shutil.copy(HIGHWATER, os.path.join(copy, "bin"))
        subprocess.run(["chmod", "-R", "a+rX", copy], check=True)
        return program

    def rows(self, sql, name="s.hws"):
        database = sqlite3.connect(self.path(name))
        try:
            return database.execute(sql).fetchall()
        finally:
            database.close()

    def assert_as_untouched(self, *command):
        """Bit for bit the losses of a run that nobody looked into."""
        seen = self.losses()
        plain = subprocess.run([*command, str(len(seen))] if command[-1] == "--steps" else command,
                               capture_output=True, text=True, timeout=600)
        self.assertEqual(plain.stdout.splitlines()[:len(seen)], seen)


class Records(Attaching):
    def test_a_step_like_one_that_was_launched(self):
        script = os.path.join(TRAINING, "transformer.py")
        process = self.start(self.python, script, "--steps", MANY)
        told = self.attached(process.pid, "--steps", "2", name="attached.hws")
        self.assertEqual(told["steps"], 2)
        self.goes_on(process)
        launched = subprocess.run(
            [HIGHWATER, "record", "--steps", "2", "--warmup", "1", "-o", self.path(), "--",
             self.python, script, "--steps", "4"], capture_output=True, text=True, timeout=300)
        self.assertEqual(launched.returncode, 0, launched.stderr)
        for what in ("select distinct path from layers l join ops o on o.layer = l.id order by 1",
                     "select name, phase, count(*) from ops group by 1, 2 order by 1, 2",
                     "select category, count(*), sum(bytes) from storages where creator is null "
                     "and category in ('parameter', 'optimizer state') group by 1"):
            self.assertEqual(self.rows(what, "attached.hws"), self.rows(what), what)
        peaks = [self.rows("select allocator_peak_bytes - allocator_begin_bytes from steps", name)
                 for name in ("attached.hws", "s.hws")]
        for attached, plain in zip(*peaks):
            self.assertLessEqual(abs(attached[0] - plain[0]), 4096)

    def test_cycles_leave_the_training_as_it_was(self):
        for script, *arguments in SCRIPTS:
            with self.subTest(script=script):
                command = (self.python, os.path.join(TRAINING, script), *arguments, "--steps")
                process = self.start(*command, MANY)
                stops, before = [], self.step_cost(process)
                for cycle in range(CYCLES):
                    told = self.attached(process.pid, "--steps", "1", name=f"{script}{cycle}.hws")
                    self.assertEqual(told["steps"], 1)
                    stops.append(told["stopped_ns"])
                    os.remove(self.path(f"{script}{cycle}.hws"))
                after = self.step_cost(process)
                self.end(process)
                self.assert_as_untouched(*command)
                print(f"{script}: {CYCLES} cycles, target stopped {statistics.median(stops) / 1e6:.2f} ms "
                      f"(median), {max(stops) / 1e6:.2f} ms (most); a step took {before:.1f} ms of processor time "
                      f"before, {after:.1f} ms after", file=sys.stderr)

    def test_training_in_a_thread(self):
        for where in ("join", "sleep"):
            with self.subTest(main_thread=where):
                process = self.start_mlp(where)
                told = self.attached(process.pid, "--steps", "2", name=where + ".hws")
                self.assertEqual(told["steps"], 2)
                self.goes_on(process)

    def test_detach_ends_a_recording(self):
        process = self.start_mlp()
        recorder = self.in_background(process.pid, "--duration", "100")
        done = subprocess.run([HIGHWATER, "detach", str(process.pid)], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(recorder.wait(30), 0)
        self.assertGreaterEqual(self.rows("select count(*) from steps")[0][0], 1)
        self.goes_on(process)
        self.assertEqual(self.attached(process.pid, "--steps", "1", name="again.hws")["steps"], 1)

    def test_detach_from_outside_of_a_container(self):
        container = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "--", "sh", "-c")
        if subprocess.run([*container, "true"], capture_output=True).returncode != 0:
            self.skipTest("no container may be made here: unshare --pid")
        here = f'"{HIGHWATER}" attach $! -o "{self.path()}" --duration 100'
        inside = subprocess.Popen([*container, f'"{self.python}" "{self.mlp}" {MANY} main >/dev/null & sleep 5; {here}'],
                                  stderr=subprocess.DEVNULL)
        self.addCleanup(inside.wait)
        self.addCleanup(inside.kill)
        is_training = f"pgrep -f -n '^[^ ]+ {self.mlp} {MANY} main'"
        deadline = time.monotonic() + 100
        while not os.path.exists(self.path()) and time.monotonic() < deadline:
            time.sleep(0.1)
        process = subprocess.check_output(is_training, shell=True, text=True).strip()
        done = subprocess.run([HIGHWATER, "detach", process], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(inside.wait(30), 0)

    @unittest.skipIf(os.geteuid() != 0, "reaching processes of other users takes root")
    def test_what_another_user_claims_in_a_container_is_not_believed(self):
        space = "".join(filter(str.isdigit, os.readlink("/proc/self/ns/pid")))
        victim = subprocess.Popen(["sleep", "100"])
        self.addCleanup(victim.wait)
        self.addCleanup(victim.kill)
        other = 65534
        for kind in ("claim", "pipe"):
            ready = os.path.join(self.folder, kind)
            os.chmod(self.folder, 0o777)
            forger = subprocess.Popen(["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child",
                                       "/usr/bin/python3", "-c", FORGER, kind, f"{space}-{victim.pid}", ready, str(other)],
                                      user=other, group=other, extra_groups=[], cwd="/", stderr=subprocess.DEVNULL)
            self.addCleanup(forger.wait)
            self.addCleanup(forger.kill)
            deadline = time.monotonic() + 20
            while not os.path.exists(ready) and forger.poll() is None and time.monotonic() < deadline:
                time.sleep(0.05)
            if not os.path.exists(ready):
                self.skipTest("no container may be made here: unshare --user --pid")
            inner, = subprocess.check_output(["pgrep", "-P", str(forger.pid)], text=True).split()
            done = subprocess.run([HIGHWATER, "detach", inner], capture_output=True, text=True, timeout=20)
            self.assertEqual(done.returncode, 5, done.stderr)
            self.assertIn("cannot be seen from here" if kind == "claim" else "is not being recorded", done.stderr)
            self.assertIsNone(victim.poll())

    def test_the_step_that_runs_out_of_memory(self):
        script = os.path.join(self.folder, "grow.py")
        with open(script, "w") as file:
            file.write(GROWS)
        process = self.start(self.python, script)
        told = self.attached(process.pid, "--on-oom")
        self.assertEqual(told["steps"], 1)
        self.assertIn("can't allocate memory", self.wait_and_read(process))
        why, = (row[0] for row in self.rows("select why from gaps where what = 'the rest of the step'"))
        asked = int(why.split("asked for ")[1].split()[0])
        workspace, live = self.rows("select workspace_bytes, live_bytes from ops order by id desc limit 1")[0]
        self.assertEqual(workspace, asked)
        done = subprocess.run([HIGHWATER, "info", "--json", self.path()], capture_output=True, text=True, timeout=60)
        self.assertAlmostEqual(json.loads(done.stdout)["baseline"]["peak_bytes"], live + asked, delta=4096)

    def wait_and_read(self, process):
        process.wait(120)
        with open(self.output) as output:
            return output.read()

    def test_an_agent_of_another_build_came_before(self):
        program = self.copy_of_the_build()
        process = self.start_mlp()
        for name, highwater in (("first.hws", HIGHWATER), ("second.hws", program), ("third.hws", HIGHWATER)):
            told = self.attached(process.pid, "--steps", "1", name=name, program=highwater)
            self.assertEqual(told["steps"], 1)
            self.goes_on(process)
        ops = [self.rows("select name, phase from ops order by id", name) for name in ("first.hws", "second.hws")]
        self.assertEqual(*ops)

    def test_duration_without_steps(self):
        process = self.start_mlp()
        told = self.attached(process.pid, "--duration", "2")
        self.assertGreater(told["steps"], 3)
        self.goes_on(process)

    def test_the_training_outlives_the_recorder(self):
        process = self.start_mlp()
        recorder = self.in_background(process.pid, "--duration", "100")
        recorder.kill()
        recorder.wait()
        self.goes_on(process)
        self.assertGreaterEqual(self.rows("select count(*) from steps")[0][0], 1)
        self.assertEqual(self.attached(process.pid, "--steps", "1", name="again.hws")["steps"], 1)
        self.goes_on(process)

    def test_the_session_outlives_the_training(self):
        process = self.start_mlp()
        recorder = self.in_background(process.pid, "--duration", "100")
        self.end(process)
        self.assertEqual(recorder.wait(60), 0)
        self.assertIn("the process ended", recorder.stderr.read())
        self.assertGreaterEqual(self.rows("select count(*) from steps")[0][0], 1)


@needs_torch2
@nightly.repeats("test_the_step_that_runs_out_of_memory")
class RecordsOnTorch2(Records):
    python = TORCH2


GRANT = ("give the container the capability SYS_PTRACE (docker run --cap-add SYS_PTRACE; in Kubernetes "
         "securityContext.capabilities.add)")

# Runs a command in which ptrace, 101, fails with EPERM.
FILTERED = """
    import ctypes, os, struct, sys
    code = b"".join(struct.pack("HBBI", *line) for line in (
        (0x20, 0, 0, 0), (0x15, 0, 1, 101), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)))
    instructions = ctypes.create_string_buffer(code)
    program = struct.pack("HxxxxxxQ", 4, ctypes.addressof(instructions))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    assert libc.prctl(22, 2, program, 0, 0) == 0  # PR_SET_SECCOMP
    os.execv(sys.argv[1], sys.argv[1:])
    """


class Refusals(Attaching):
    def refused(self, pid, what, hint, *options, **where):
        done = self.attach(pid, *options, **where)
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertEqual(done.stderr.splitlines()[-2:], [f"highwater: error: {what}", f"hint: {hint}"])
        self.assertFalse(os.path.exists(self.path()))

    def run_plain(self, *command):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        self.addCleanup(self.end, process)
        time.sleep(0.5)
        return process

    def proc_root(self, pid, scope, capabilities=0):
        """/proc as a kernel with another ptrace_scope would show it."""
        root = os.path.join(self.folder, f"proc{scope}")
        os.makedirs(os.path.join(root, "sys/kernel/yama"))
        os.symlink(f"/proc/{pid}", os.path.join(root, str(pid)))
        with open(os.path.join(root, "sys/kernel/yama/ptrace_scope"), "w") as file:
            file.write(f"{scope}\n")
        return {**os.environ, "HIGHWATER_PROC_ROOT": root}

    def test_no_such_process(self):
        ended = subprocess.Popen(["true"])
        ended.wait()
        self.refused(ended.pid, f"there is no process {ended.pid}", "list training processes with 'highwater ps'")

    def test_a_process_that_has_ended(self):
        ended = subprocess.Popen(["true"])
        self.addCleanup(ended.wait)
        time.sleep(0.3)
        self.refused(ended.pid, f"process {ended.pid} has ended", "list training processes with 'highwater ps'")

    def test_not_python(self):
        process = self.run_plain("sleep", "100")
        self.refused(process.pid, f"process {process.pid} is not a 64-bit Python process",
                     "list training processes with 'highwater ps'")

    def test_no_torch(self):
        process = self.run_plain(self.python, "-c", "import time; time.sleep(100)")
        self.refused(process.pid, f"process {process.pid} is Python but has not imported torch",
                     "attach once it trains, or start it with 'highwater record -- …' instead")

    @unittest.skipUnless(os.geteuid() == 0, "only root can become another user")
    def test_another_users_process(self):
        process = self.run_plain("sleep", "100")
        os.chmod(self.folder, 0o777)
        self.refused(process.pid, f"process {process.pid} belongs to the user root",
                     "attach as that user, or as root",
                     prefix=NOBODY, program=self.copy_of_the_build())

    def test_the_kernels_scope(self):
        process = self.run_plain("sleep", "100")
        instead = "start it with 'highwater record -- …' instead"
        root = os.geteuid() == 0  # without the capability, as this /proc tells: of a container
        for scope, what, hint in (
                (1, "this system lets a process be attached to by its parents only (ptrace_scope is 1)",
                 f"{GRANT if root else 'attach as root, set kernel.yama.ptrace_scope to 0'}, or {instead}"),
                (2, "this system lets only root attach to processes (ptrace_scope is 2)",
                 f"{GRANT if root else 'attach as root'}, or {instead}"),
                (3, "this system forbids attaching to any process (ptrace_scope is 3)", instead)):
            with self.subTest(scope=scope):
                self.refused(process.pid, what, hint, environment=self.proc_root(process.pid, scope))

    def test_a_filter_of_system_calls(self):
        process = self.run_plain("sleep", "100")
        program = self.path("filtered.py")
        with open(program, "w") as file:
            file.write(textwrap.dedent(FILTERED))
        hint = f"{GRANT}, or start it with 'highwater record -- …' instead"
        what = "this system lets no process be attached to: the system call ptrace is filtered"
        self.refused(process.pid, what, hint, prefix=(sys.executable, program))
        done = subprocess.run([sys.executable, program, HIGHWATER, "doctor", "--json"], capture_output=True, text=True, check=False)
        part = next(part for part in json.loads(done.stdout)["parts"] if part["part"] == "attach")
        self.assertEqual((part["state"], part["what"], part["hint"]), ("limited", what, hint))

    def test_recorded_already(self):
        process = self.start_mlp()
        recorder = self.in_background(process.pid, "--duration", "100", name="first.hws")
        self.refused(process.pid, f"process {process.pid} is being recorded already, by process {recorder.pid}",
                     f"end that recording with 'highwater detach {process.pid}'")

    def test_an_operation_that_does_not_end(self):
        process = self.start(self.python, "-c", "import torch, ctypes\nprint(0, flush=True)\n"
                             "ctypes.PyDLL(None).usleep(100000000)", steps=1)
        self.refused(process.pid, f"process {process.pid} has been inside of one operation for 1 s and could not take "
                     "the agent in", "try again, or start it with 'highwater record -- …' instead", "--patience", "1")
        waiting = subprocess.Popen([HIGHWATER, "attach", str(process.pid), "-o", self.path()],
                                   stderr=subprocess.PIPE, text=True)
        time.sleep(1)
        waiting.send_signal(signal.SIGINT)
        self.assertIn("interrupted before", waiting.communicate(timeout=10)[1])
        self.assertEqual(waiting.returncode, 5)
        self.assertIsNone(process.poll())

    def test_a_process_that_ends_meanwhile(self):
        process = self.start(self.python, "-c", "import torch, ctypes\nprint(0, flush=True)\n"
                             "ctypes.PyDLL(None).alarm(4)\nctypes.PyDLL(None).usleep(100000000)", steps=1)
        self.refused(process.pid, f"process {process.pid} ended before it could be attached to",
                     "check the program's own output; list training processes with 'highwater ps'")

    def test_no_step_ran_out_of_memory(self):
        done = subprocess.run([HIGHWATER, "record", "--on-oom", "-o", self.path(), "--",
                               self.python, self.mlp, "3", "main"], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn(f"'{self.python}' did not run out of memory (it exited with status 0)", done.stderr)
        self.assertFalse(os.path.exists(self.path()))

    def test_detach_from_what_is_not_recorded(self):
        done = subprocess.run([HIGHWATER, "detach", "1"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 5)
        self.assertIn("process 1 is not being recorded", done.stderr)


class Lists(Attaching):
    def test_training_processes(self):
        process = self.start_mlp()
        done = subprocess.run([HIGHWATER, "ps", "--json"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = {each["pid"]: each for each in json.loads(done.stdout)["processes"]}
        told = found[process.pid]
        self.assertGreater(told.pop("resident_bytes"), 50_000_000)
        self.assertIn(told.pop("seconds"), range(1, 1000))
        self.assertEqual(told, {
            "pid": process.pid, "command": f"{self.python} {self.mlp} {MANY} main", "framework": "pytorch",
            "attachable": True, "why": "", "folder": os.getcwd()})

    def test_our_own_executor_trains_nothing(self):
        executor = os.path.join(os.path.dirname(HIGHWATER), "highwater-exec")
        if not os.access(executor, os.X_OK):
            self.skipTest("highwater-exec is not built (install libtorch with scripts/setup, then build)")
        session = os.path.join(self.folder, "s.hws")
        self.attached(self.start_mlp().pid, "--steps", "1", name="s.hws")
        process = subprocess.Popen([executor, session, "--repeat", "100"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + 20
        while "libtorch_cpu" not in pathlib.Path(f"/proc/{process.pid}/maps").read_text() and time.monotonic() < deadline:
            time.sleep(0.002)
        process.send_signal(signal.SIGSTOP)  # while it loads
        done = subprocess.run([HIGHWATER, "ps", "--json"], capture_output=True, text=True, timeout=60)
        listed = [each["pid"] for each in json.loads(done.stdout)["processes"]]
        self.assertIsNone(process.poll())
        self.assertNotIn(process.pid, listed)

    @unittest.skipUnless(os.geteuid() == 0, "only root can become another user")
    def test_processes_that_hide_what_they_have_loaded(self):
        os.chmod(self.folder, 0o755)
        process = subprocess.Popen(
            [*NOBODY, self.python, "-c", "import ctypes, time\nctypes.CDLL(None).prctl(4, 0)\n"  # PR_SET_DUMPABLE
             "print(flush=True)\ntime.sleep(100)"], stdout=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(self.end, process)
        process.stdout.readline()
        done = subprocess.run([*NOBODY, self.copy_of_the_build(), "ps", "--json"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = {each["pid"]: each for each in json.loads(done.stdout)["processes"]}
        self.assertEqual(
            (found[process.pid]["attachable"], found[process.pid]["framework"], found[process.pid]["why"]),
            (False, "", f"process {process.pid} does not let itself be looked into (it changed its user, or asked "
             "not to be)"))


if __name__ == "__main__":
    nightly.main()
