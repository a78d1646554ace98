# SPDX-License-Identifier: MIT
"""Snapshots of a caching allocator as torch.cuda.memory._snapshot() has them, of a training that never happened."""
import gzip
import io
import pickle

SMALL, LARGE = 2 << 20, 20 << 20  # segments; blocks of up to 1 MiB lie in small ones
FAR = 1 << 42  # between the addresses of kinds of segments
# What a layer makes: function, line, bytes.
MADE = (("attention", 12, 1_500_000), ("norm", 15, 40_000), ("widen", 18, 3_000_100), ("narrow", 21, 900_000))


def frame(name, line, file="train.py"):
    return {"filename": "/home/someone/train/" + file, "name": name, "line": line}


def stack(*innermost_first):
    return [*innermost_first, frame("train_step", 31), frame("main", 58)]


class Allocator:
    """Segments of blocks, and the history of what was asked of them."""

    def __init__(self, expandable=False, times=False, requested=True):
        self.expandable, self.times, self.requested = expandable, times, requested
        self.segments, self.entries, self.recording, self.time = [], [], False, 1_700_000_000_000_000
        self.top = {SMALL: 0x7f0000000000, LARGE: 0x7f0000000000 + FAR}

    def note(self, action, address, size, frames):
        self.time += 7
        if self.recording:
            entry = {"action": action, "addr": address, "size": size, "stream": 0, "frames": frames}
            self.entries.append({**entry, "time_us": self.time} if self.times else entry)

    def grow(self, kind, size, frames):
        """A segment with a free block of that size; the one segment of its kind where segments are expandable."""
        room = -(-size // kind) * kind
        address, self.top[kind] = self.top[kind], self.top[kind] + room
        self.note("segment_map" if self.expandable else "segment_alloc", address, room, frames)
        known = [segment for segment in self.segments if segment["kind"] == kind]
        if not (self.expandable and known):
            known = [{"kind": kind, "address": address, "blocks": []}]
            self.segments += known
        known[0]["blocks"].append({"address": address, "size": room, "requested": 0, "used": False, "frames": []})
        self.merge(known[0])
        return known[0]

    @staticmethod
    def merge(segment):
        """Joins free neighbours."""
        blocks = []
        for block in segment["blocks"]:
            if blocks and not block["used"] and not blocks[-1]["used"]:
                blocks[-1]["size"] += block["size"]
            else:
                blocks.append(block)
        segment["blocks"] = blocks

    def alloc(self, requested, frames):
        size = -(-requested // 512) * 512
        kind = SMALL if size <= 1 << 20 else LARGE
        fits = [(block["size"], block["address"], segment) for segment in self.segments if segment["kind"] == kind
                for block in segment["blocks"] if not block["used"] and block["size"] >= size]
        segment = min(fits, key=lambda fit: fit[:2])[2] if fits else self.grow(kind, size, frames)
        free = min((block for block in segment["blocks"] if not block["used"] and block["size"] >= size),
                   key=lambda block: block["size"])
        at = segment["blocks"].index(free)
        used = {"address": free["address"], "size": size, "requested": requested, "used": True,
                "frames": frames if self.recording else []}
        rest = {**free, "address": free["address"] + size, "size": free["size"] - size}
        segment["blocks"][at:at + 1] = [used, rest] if rest["size"] else [used]
        self.note("alloc", used["address"], requested, frames)
        return used["address"]

    def free(self, address, frames):
        for segment in self.segments:
            for block in segment["blocks"]:
                if block["address"] == address:
                    if self.requested:
                        self.note("free_requested", address, block["requested"], frames)
                    self.note("free_completed", address, block["requested"], frames)
                    block.update(used=False, requested=0, frames=[])
                    self.merge(segment)
                    return

    def empty_cache(self):
        for segment in list(self.segments):
            if all(not block["used"] for block in segment["blocks"]):
                size = sum(block["size"] for block in segment["blocks"])
                self.note("segment_free", segment["address"], size, stack(frame("empty_cache", 158, "memory.py")))
                self.segments.remove(segment)

    def snapshot(self):
        def written(block):
            return {"address": block["address"], "size": block["size"], "requested_size": block["requested"],
                    "state": "active_allocated" if block["used"] else "inactive", "frames": block["frames"]}

        segments = []
        for segment in self.segments:
            used = [block for block in segment["blocks"] if block["used"]]
            segments.append({
                "device": 0, "address": segment["address"], "stream": 0, "segment_pool_id": (0, 0), "frames": [],
                "total_size": sum(block["size"] for block in segment["blocks"]),
                "allocated_size": sum(block["size"] for block in used), "active_size": sum(block["size"] for block in used),
                "requested_size": sum(block["requested"] for block in used),
                "segment_type": "small" if segment["kind"] == SMALL else "large", "is_expandable": self.expandable,
                "blocks": [written(block) for block in segment["blocks"]]})
        return {"segments": segments, "device_traces": [self.entries]}


def train(allocator, steps, empties=False, before=()):
    """Steps of 20 layers; each keeps its loss, as a program that leaks does. `before` is freed in the first one."""
    backward = stack(frame("backward", 35))
    allocator.recording = True
    for address in before:
        allocator.free(address, backward)
    for step in range(steps):
        saved, gradients = [], []
        for layer in range(20):
            for name, line, size in MADE:
                where = stack(frame(name, line, "block.py"), frame(f"layer{layer}", 40 + layer, "model.py"))
                saved.append(allocator.alloc(size + 300 * layer, where))
        allocator.alloc(4 + 100_000 * (step % 2), stack(frame("keep_loss", 33)))
        for address in reversed(saved):
            gradients.append(allocator.alloc(200_000, backward))
            allocator.free(address, backward)
        for address in gradients:
            allocator.free(address, stack(frame("zero_grad", 37)))
        if empties:
            allocator.empty_cache()


def parameters(allocator):
    return [allocator.alloc(size, []) for size in (37_632, 256, 4_000_000, 147_000, 1_200_000) * 8]


def with_cache_emptied():
    allocator = Allocator()
    parameters(allocator)
    train(allocator, 8, empties=True)
    return allocator.snapshot()


def with_expandable_segments():
    allocator = Allocator(expandable=True)
    parameters(allocator)
    train(allocator, 8)
    return allocator.snapshot()


def with_a_late_history():
    allocator = Allocator(times=True)
    parameters(allocator)
    train(allocator, 2, before=[allocator.alloc(2_000_000, []) for _ in range(30)])
    return allocator.snapshot()


def without_requests_to_free():
    allocator = Allocator(expandable=True, times=True, requested=False)
    parameters(allocator)
    train(allocator, 2)
    return allocator.snapshot()


SNAPSHOTS = {"before-history": with_a_late_history, "empty-cache": with_cache_emptied,
             "expandable": with_expandable_segments, "no-free-requested": without_requests_to_free}


def figures(snapshot):
    """What a reader has to find in it, counted from the snapshot itself."""
    entries, = snapshot["device_traces"]
    counts = {action: sum(entry["action"] == action for entry in entries)
              for action in ("alloc", "free_requested", "free_completed")}
    begun = {entry["addr"] for entry in entries if entry["action"] == "alloc"}
    levels = {"alloc": 1, "free_completed": -1}
    segments = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1}
    blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]
              if block["state"] == "active_allocated"]
    allocated_end = sum(block["requested_size"] for block in blocks)
    reserved_end = sum(segment["total_size"] for segment in snapshot["segments"])
    allocated = begin = allocated_end - sum(levels.get(entry["action"], 0) * entry["size"] for entry in entries)
    reserved = reserved_end - sum(segments.get(entry["action"], 0) * entry["size"] for entry in entries)
    most, most_reserved, alive, seen, freed, before = allocated, reserved, set(), set(), 0, 0
    for entry in entries:
        allocated += levels.get(entry["action"], 0) * entry["size"]
        reserved += segments.get(entry["action"], 0) * entry["size"]
        most, most_reserved = max(most, allocated), max(most_reserved, reserved)
        if entry["action"] == "alloc":
            alive.add(entry["addr"])
        elif entry["action"] == "free_completed":
            freed += 1
            before += entry["addr"] not in seen  # it was there before the history
            alive.discard(entry["addr"])
        if entry["action"] in ("alloc", "free_completed"):
            seen.add(entry["addr"])
    old = sum(block["address"] not in alive for block in blocks)
    ways = set()
    for entry in entries:
        if entry["action"] == "alloc":
            way = tuple((part["filename"], part["line"], part["name"]) for part in reversed(entry["frames"]))
            ways |= {way[:length + 1] for length in range(len(way))}
    assert begun and allocated == allocated_end and reserved == reserved_end
    return {"allocs": counts["alloc"], "frees_requested": counts["free_requested"], "frees_completed": counts["free_completed"],
            "storages": counts["alloc"] + old + before, "freed_storages": freed,
            "layers": len(ways) + (old + before > 0), "allocated_begin": begin,
            "allocated_peak": most, "allocated_end": allocated_end, "reserved_peak": most_reserved, "reserved_end": reserved_end,
            "last_time": 1000 * max(entry.get("time_us", 0) for entry in entries)}


def packed(snapshot):
    file = io.BytesIO()
    pickle.dump(snapshot, file, protocol=4)
    return gzip.compress(file.getvalue(), 9, mtime=0)
