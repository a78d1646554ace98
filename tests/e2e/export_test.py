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

# Runs a training script with the policy applied to its model.
RUN_WITH_POLICY = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("policy", sys.argv[2])
POLICY = importlib.util.module_from_spec(spec)
spec.loader.exec_module(POLICY)
source = open(sys.argv[1]).read()
line = "    optimizer = "
assert source.count(line) == 1
source = source.replace(line, "    POLICY.apply(model)\\n" + line)
sys.argv = [sys.argv[1]]
exec(compile(source, sys.argv[0], "exec"))
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
        losses = [line.split()[1] for line in output.splitlines() if line[:1].isdigit()]
        self.assertEqual(len(losses), 3, output)
        return session, losses

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
        session, losses = self.record("plain.hws", script)
        plan, policy, runner = self.path / "a.plan", self.path / "policy.py", self.path / "run.py"
        runner.write_text(RUN_WITH_POLICY)
        self.highwater("plan", session, "--planner", "highwater", "--ratio", ratio, "--time-limit", 5, "-o", plan)
        told = self.json_of("export", session, "--to", "torch-policy", "--plan", plan, "-o", policy)
        checkpointed, same = self.record("policy.hws", runner, script, policy)
        self.assertEqual(losses, same)
        plain, expected = told["baseline"]["peak_bytes"], told["expected_peak_bytes"]
        measured = self.json_of("info", checkpointed)["baseline"]["peak_bytes"]
        print(f"{model} at {ratio}: {plain} bytes plain, {expected} expected, {measured} with the policy")
        self.assertLess(expected, 0.95 * plain)
        self.assertLess(abs(measured - expected), 0.15 * (plain - expected) + 0.01 * plain)

    def test_policy_of_a_transformer(self):
        self.policy_keeps_its_word("transformer", 0.7)

    def test_policy_of_a_resnet(self):
        self.policy_keeps_its_word("resnet", 0.7)

    def test_policy_of_an_lstm(self):
        self.policy_keeps_its_word("lstm", 0.6)


if __name__ == "__main__":
    unittest.main(verbosity=2)
