#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exports under their own tools: Perfetto's published proto, selective checkpoints in torch 2.x."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from torch2 import TORCH2, needs_torch2

ROOT = pathlib.Path(__file__).resolve().parents[2]
HIGHWATER = os.path.join(os.environ.get("HIGHWATER_BIN", "build/release/bin"), "highwater")

# Prints what the trace holds; unknown fields are fields that the proto does not have.
READ_TRACE = """
import collections, json, sys
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent
trace = Trace()
trace.ParseFromString(open(sys.argv[1], "rb").read())
def unknown(message):
    found = len(UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.message_type is not None:
            for part in value if isinstance(value, collections.abc.Sequence) else [value]:
                found += unknown(part)
    return found
names, depth, highest, slices, deepest = {}, collections.Counter(), collections.Counter(), 0, 0
for packet in trace.packet:
    if packet.HasField("track_descriptor"):
        track = packet.track_descriptor
        names[track.uuid] = track.name
        continue
    event = packet.track_event
    assert event.track_uuid in names, "an event of a track that was not described"
    if event.type == TrackEvent.TYPE_SLICE_BEGIN:
        slices += 1
        depth[event.track_uuid] += 1
    elif event.type == TrackEvent.TYPE_SLICE_END:
        depth[event.track_uuid] -= 1
        assert depth[event.track_uuid] >= 0, "a slice ends that did not begin"
    elif event.type == TrackEvent.TYPE_COUNTER:
        name = names[event.track_uuid]
        highest[name] = max(highest[name], event.counter_value)
print(json.dumps({"unknown": unknown(trace), "open": sum(depth.values()), "slices": slices,
                  "highest": highest, "packets": len(trace.packet)}))
"""

# Runs a training script with the policy applied to its model; the last line tells its buffers, which hold the running
# statistics.
RUN_WITH_POLICY = """
import hashlib, importlib.util, sys
if sys.argv[2] == "none":
    class POLICY: apply = staticmethod(lambda model: model)
else:
    spec = importlib.util.spec_from_file_location("policy", sys.argv[2])
    POLICY = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(POLICY)
source = open(sys.argv[1]).read()
line = "    optimizer = "
assert source.count(line) == 1
source = source.replace(line, "    MODELS.append(POLICY.apply(model))\\n" + line)
sys.argv = [sys.argv[1]]
MODELS = []
exec(compile(source, sys.argv[0], "exec"))
digest = hashlib.sha256()
for buffer in MODELS[0].buffers():
    digest.update(buffer.numpy().tobytes())
print("buffers", digest.hexdigest())
"""


@needs_torch2
class Exports(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def highwater(self, *arguments):
        done = subprocess.run([HIGHWATER, *map(str, arguments)], capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def json_of(self, *arguments):
        return json.loads(self.highwater(*arguments, "--json"))

    def record(self, name, *program):
        session = self.path / name
        output = self.highwater("record", "-o", session, "--", TORCH2, *program)
        told = [line for line in output.splitlines() if line[:1].isdigit() or line.startswith("buffers")]
        self.assertEqual(len(told), 4, output)
        return session, told

    def test_perfetto_reads_a_recorded_session(self):
        session = ROOT / "sessions" / "transformer.hws"
        self.highwater("export", session, "--to", "perfetto", "-o", self.path / "t.pftrace")
        done = subprocess.run([TORCH2, "-c", READ_TRACE, self.path / "t.pftrace"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        seen = json.loads(done.stdout)
        info = self.json_of("info", session)
        self.assertEqual(seen["unknown"], 0)
        self.assertEqual(seen["open"], 0)
        self.assertGreaterEqual(seen["slices"], info["ops"] + 1)
        self.assertEqual(seen["highest"]["live"], info["baseline"]["peak_bytes"])

    def policy_keeps_its_word(self, model, ratio):
        script = ROOT / "tests" / "training" / f"{model}.py"
        plan, policy, runner = self.path / "a.plan", self.path / "policy.py", self.path / "run.py"
        runner.write_text(RUN_WITH_POLICY)
        session, losses = self.record("plain.hws", runner, script, "none")
        told_plan = self.json_of("plan", session, "--planner", "highwater", "--ratio", ratio, "--time-limit", 5, "-o", plan)
        told = self.json_of("export", session, "--to", "torch-policy", "--plan", plan, "-o", policy)
        checkpointed, same = self.record("policy.hws", runner, script, policy)
        self.assertEqual(losses, same)
        plain, expected = told["baseline"]["peak_bytes"], told["expected_peak_bytes"]
        measured = self.json_of("info", checkpointed)["baseline"]["peak_bytes"]
        print(f"{model} at {ratio}: {plain} bytes plain, {expected} expected, {measured} with the policy")
        self.assertLess(expected, 0.95 * plain)
        self.assertLessEqual(expected, told_plan["budget_bytes"])
        self.assertLess(abs(measured - expected), 0.15 * (plain - expected) + 0.01 * plain)

    def test_policy_of_a_transformer(self):
        self.policy_keeps_its_word("transformer", 0.7)

    def test_policy_of_a_resnet(self):
        self.policy_keeps_its_word("resnet", 0.8)
        # Where checkpoints of whole modules cannot keep to the plan's budget, there is no policy.
        tight, policy = self.path / "tight.plan", self.path / "tight.py"
        self.highwater("plan", self.path / "plain.hws", "--planner", "highwater", "--ratio", 0.65, "--time-limit", 5, "-o", tight)
        done = subprocess.run([HIGHWATER, "export", self.path / "plain.hws", "--to", "torch-policy", "--plan", tight, "-o", policy],
                              capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertRegex(done.stderr, "checkpoints of modules would take .*, the plan's budget is .*\nhint: 'highwater train'")
        self.assertFalse(policy.exists())

    def test_policy_of_an_lstm(self):
        self.policy_keeps_its_word("lstm", 0.6)


if __name__ == "__main__":
    unittest.main(verbosity=2)
