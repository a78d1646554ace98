#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The agent may come to a program before, while or after it imports torch: it is seen in every order.

HIGHWATER_CYCLES: how many recordings are started in a row beside six busy loops (default: 3).
"""
import json
import os
import subprocess
import sys
import unittest

from sessions import InFolder

BIN = os.path.abspath(os.environ.get("HIGHWATER_BIN", "build/release/bin"))
HIGHWATER = os.path.join(BIN, "highwater")
AGENT = os.path.join(BIN, "..", "lib", "libhighwater_agent.so")
PYTHON = "/usr/bin/python3"
CYCLES = int(os.environ.get("HIGHWATER_CYCLES", "3"))
BUSY_LOOPS = 6

# A package called torch whose import stops at every point that `gate` is asked to, on the thread that imports.
TORCH = """
import gate
gate.at("executing")
if gate.failures:
    gate.failures.pop()
    raise RuntimeError("not today")
ready = True
"""

# argv: where boot.py runs, how many imports fail before one succeeds.
BOOTED = """
import ctypes, importlib.machinery, json, os, sys, threading, types
point, agent = sys.argv[1], sys.argv[3]
gate = sys.modules["gate"] = types.ModuleType("gate")
gate.failures = [None] * int(sys.argv[2])
reached, booted = threading.Event(), threading.Event()
importer = threading.current_thread()
gone_on, installed, faults = [], [], []

def at(here):
    if here == point and threading.current_thread() is importer and not booted.is_set():
        reached.set()
        assert booted.wait(60)
gate.at = at

def start(late=False):
    torch = sys.modules["torch"]
    installed.append({"ready": hasattr(torch, "ready"), "late": late, "gone_on": bool(gone_on)})
gate.start = start

class Library:
    _name = agent
    def __init__(self):
        self.hw_shim_name = lambda index: (b"boot.py", b"wire.py", b"install.py", None)[index]
        self.hw_shim_source = lambda index: source(index) if index < 2 else b"from gate import start"
        self.hw_send = lambda *frame: 0
        self.hw_fault = lambda text, length: faults.append(text.decode())
    def __getattr__(self, name):
        function = self.__dict__[name] = lambda *arguments: None
        return function

class Spec(importlib.machinery.ModuleSpec):
    executed = False
    @property
    def name(self):
        if Spec.executed and "torch" not in sys.modules:
            at("out of sys.modules")
        return self.__dict__["name"]
    @name.setter
    def name(self, value):
        self.__dict__["name"] = value

class Loader(importlib.machinery.SourceFileLoader):
    def create_module(self, spec):
        at("found")
    def exec_module(self, module):
        at("about to execute")
        super().exec_module(module)
        at("executed")
        Spec.executed = True

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        at("searching")
        file = os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), "torch", "__init__.py")
        spec = Spec(name, Loader(name, file), origin=file, is_package=True)
        spec.submodule_search_locations.append(os.path.dirname(file))
        return spec

source = ctypes.PyDLL(agent).hw_shim_source
source.restype = ctypes.c_char_p
boot = compile(source(0), "<highwater boot>", "exec")

def run_boot():
    reached.wait(60)
    try:
        exec(boot, {"__name__": "_highwater.boot", "library": Library()})
    except BaseException as error:
        faults.append(repr(error))
    booted.set()

sys.meta_path.insert(0, Finder())
plain = sys.modules["_frozen_importlib"]._load_unlocked
others = list(sys.meta_path)
thread = threading.Thread(target=run_boot)
thread.start()
at("before")
while True:
    try:
        import torch
        break
    except RuntimeError:
        at("failed")
gone_on.append(True)
at("after")
thread.join()
print(json.dumps({"installed": installed, "faults": faults, "finders_left": sys.meta_path != others,
                  "loader_left": sys.modules["_frozen_importlib"]._load_unlocked is not plain,
                  "spec": type(torch.__spec__).__name__}))
"""

# Starts the agent by itself, as a launched Python program does at its very beginning, and waits until it has come
# as far as it can.
LATE = """
import ctypes, os, sys, time
point, started = os.environ["POINT"], []
def has_come():
    if point == "searching":
        return sys.modules["_frozen_importlib"]._load_unlocked.__name__ == "load_torch"
    if point == "executing":
        return type(sys.modules["torch"].__spec__).__name__ == "WatchedSpec"
    return getattr(sys.modules.get("_highwater.install"), "_current", None) is not None
def at(here):
    if here != point or started:
        return
    started.append(here)
    assert ctypes.PyDLL(os.environ["AGENT"]).agent_attach(os.environ["SOCKET"].encode(), 0, 0) == 0
    while not has_come():
        time.sleep(0.001)
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            at("searching")
        if name == "torch.nn" and "torch.nn" not in sys.modules:
            at("executing")
sys.meta_path.insert(0, Finder())
import torch
at("imported")
class Inner(torch.nn.Linear):
    def forward(self, value):
        at("first forward")
        return super().forward(value)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), Inner(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(4):
    optimizer.zero_grad()
    loss = model(torch.randn(4, 8)).pow(2).mean()
    loss.backward()
    if step == 0:
        at("first backward done")
    optimizer.step()
    print(loss.item().hex())
"""

WITHOUT_AGENT = """
export SOCKET=$HIGHWATER_SOCKET
unset LD_PRELOAD HIGHWATER_SOCKET HIGHWATER_LD_PRELOAD
exec "$@"
"""

THREE_STEPS = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
"""


class Orders(InFolder):
    def booted(self, point, failures=0):
        self.script(BOOTED)
        os.makedirs(os.path.join(self.folder, "torch"), exist_ok=True)
        self.script(TORCH, "torch/__init__.py")
        done = subprocess.run([PYTHON, os.path.join(self.folder, "train.py"), point, str(failures), AGENT],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def assert_seen(self, seen, late=False):
        self.assertEqual(seen, {"installed": [{"ready": True, "late": late, "gone_on": late}], "faults": [],
                                "finders_left": False, "loader_left": False, "spec": "Spec"})

    def test_before_and_during_the_import(self):
        for point in ("before", "searching", "found", "about to execute", "executing", "executed",
                      "out of sys.modules"):
            with self.subTest(point=point):
                self.assert_seen(self.booted(point))

    def test_an_import_that_succeeds_only_at_the_second_try(self):
        for point in ("before", "searching", "found", "about to execute", "executing", "failed"):
            with self.subTest(point=point):
                self.assert_seen(self.booted(point, failures=1))

    def test_after_the_import(self):
        self.assert_seen(self.booted("after"), late=True)


class WithTorch(InFolder):
    def recorded(self, name, *options, point="", prefix=()):
        self.session = os.path.join(self.folder, name + ".hws")
        script = self.script(LATE)
        environment = {**os.environ, "POINT": point, "AGENT": AGENT}
        done = subprocess.run([HIGHWATER, "record", "--json", "-o", self.session, *options, "--", *prefix,
                               PYTHON, script], capture_output=True, text=True, timeout=300, env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.query("select name, phase, live_bytes from ops order by id")

    def late(self, point, *options):
        script = self.script(WITHOUT_AGENT, "without_agent.sh")
        return self.recorded(point.replace(" ", "_"), *options, point=point, prefix=("sh", script))

    def test_while_torch_is_imported(self):
        as_launched = self.recorded("launched", "--steps", "3")
        for point in ("searching", "executing"):
            with self.subTest(point=point):
                ops = self.late(point, "--steps", "3")
                self.assertEqual(ops, as_launched)
                self.assertEqual(self.query("select what from gaps"), [])

    def test_a_step_that_has_begun_is_let_through(self):
        as_launched = self.recorded("launched", "--steps", "2", "--warmup", "1")
        for point in ("imported", "first forward", "first backward done"):
            with self.subTest(point=point):
                ops = self.late(point, "--steps", "2")
                self.assertEqual([op[:2] for op in ops], [op[:2] for op in as_launched])
                self.assertEqual(self.query("select what, why from gaps"), [
                    ("the first step", "the program was under way before it could be watched")])


class AtTheEnd(InFolder):
    """A thread that enters an interpreter while it ends damages its memory; the program's end waits for the agent's."""

    def recorded(self, *command, environment=None):
        return subprocess.run([HIGHWATER, "record", "-o", self.session, "--", *command], capture_output=True, text=True,
                              timeout=120, env=environment)

    def test_the_interpreter_waits_for_the_agent(self):
        self.script("""
            import os, time
            open(os.environ["BEGUN"], "w").close()
            time.sleep(2)  # the program is at its end by now
            open(os.environ["ENDED"], "w").close()
            raise ImportError("not today")
            """, "ctypes.py")
        script = self.script("import os, time\nwhile not os.path.exists(os.environ['BEGUN']): time.sleep(0.01)\n")
        begun, ended = os.path.join(self.folder, "begun"), os.path.join(self.folder, "ended")
        done = self.recorded(PYTHON, script, environment={**os.environ, "PYTHONPATH": self.folder, "BEGUN": begun, "ENDED": ended})
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertTrue(os.path.exists(ended))

    def test_programs_that_end_at_once(self):
        for _ in range(20):
            done = self.recorded(PYTHON, os.path.join(self.folder, "none.py"))
            self.assertIn("exited with status 2", done.stderr)


class UnderLoad(InFolder):
    def test_no_recording_is_lost(self):
        script = self.script(THREE_STEPS)
        for _ in range(BUSY_LOOPS):
            loop = subprocess.Popen([PYTHON, "-c", "while True: pass"])
            self.addCleanup(loop.wait)
            self.addCleanup(loop.kill)
        lost = []
        for cycle in range(CYCLES):
            session = os.path.join(self.folder, f"{cycle}.hws")
            done = subprocess.run([HIGHWATER, "record", "--json", "-o", session, "--", PYTHON, script],
                                  capture_output=True, text=True, timeout=600)
            steps = json.loads(done.stdout)["steps"] if done.returncode == 0 else 0
            if steps != 3:
                lost.append((cycle, steps, done.stderr[-500:]))
            if os.path.exists(session):
                os.remove(session)
        print(f"{CYCLES - len(lost)} of {CYCLES} recordings beside {BUSY_LOOPS} busy loops", file=sys.stderr)
        self.assertEqual(lost, [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
