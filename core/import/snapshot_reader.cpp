// SPDX-License-Identifier: MIT
#include "core/import/snapshot_reader.h"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "core/import/checked.h"

namespace hw::core {
namespace {

class SnapshotReader {
public:
    explicit SnapshotReader(const PickleDocument& document) : document_(document) {}

    SnapshotContents run() {
        const PickleRef root = document_.root();
        if (document_.isDict(root))
            readDict(root);
        else if (document_.isList(root))
            readSegments(root, {});  // memory_snapshot(), and _snapshot() of torch 1.12 and 1.13
        else
            throw std::invalid_argument("the pickle holds no snapshot");
        if (contents_.devices.empty())
            throw std::invalid_argument("the snapshot holds no segment and no event");
        return std::move(contents_);
    }

private:
    void readDict(PickleRef root) {
        const auto segments = document_.find(root, "segments");
        const auto traces = document_.find(root, "device_traces");
        const auto hostSegments = document_.find(root, "host_segments");
        const auto hostTraces = document_.find(root, "host_traces");
        if (!segments && !traces && !hostSegments && !hostTraces)
            throw std::invalid_argument("there are no segments and no device_traces");
        if (segments) readSegments(*segments, {});
        if (traces) readTraces(*traces);
        if (hostSegments) readSegments(*hostSegments, kSnapshotHost);
        if (hostTraces) readHostTraces(*hostTraces);
        if (const auto annotations = document_.find(root, "external_annotations"))
            readAnnotations(*annotations);
    }

    // A container that stands in several places would be walked as often.
    void visit(PickleRef container) {
        if (!visited_.insert(container).second)
            throw std::invalid_argument("one list stands in several places");
    }
    const std::vector<PickleRef>& listOf(PickleRef value, const char* what) {
        if (!document_.isList(value))
            throw std::invalid_argument(std::string(what) + " are no list");
        if (!document_.items(value).empty()) visit(value);
        return document_.items(value);
    }
    std::optional<std::int64_t> number(PickleRef dict, std::string_view key) const {
        const auto value = document_.find(dict, key);
        return value ? document_.integer(*value) : std::nullopt;
    }
    std::string_view textOf(PickleRef dict, std::string_view key) const {
        const auto value = document_.find(dict, key);
        return value ? document_.text(*value).value_or(std::string_view()) : std::string_view();
    }
    std::int64_t requiredNumber(PickleRef dict, std::string_view key, const char* of) const {
        const auto value = number(dict, key);
        if (!value)
            throw std::invalid_argument(std::string(of) + " has no number '" + std::string(key) +
                                        "'");
        return *value;
    }
    std::int64_t size(PickleRef dict, std::string_view key, const char* of) const {
        const std::int64_t bytes = requiredNumber(dict, key, of);
        if (bytes < 0) throw std::invalid_argument(std::string(of) + " has a negative size");
        return bytes;
    }
    std::optional<std::int64_t> timeOf(PickleRef dict) const {
        const auto microseconds = number(dict, "time_us");
        return microseconds ? std::optional(checkedMultiply(*microseconds, 1000)) : std::nullopt;
    }
    SnapshotDevice& deviceAt(std::int64_t ordinal) {
        if (ordinal > 4095 || (ordinal < 0 && ordinal != kSnapshotHost))
            throw std::invalid_argument("a device has the number " + std::to_string(ordinal));
        return contents_.devices[ordinal];
    }

    // `device`: of all segments; none: each says its own.
    void readSegments(PickleRef list, std::optional<std::int64_t> device) {
        for (const PickleRef segment : listOf(list, "segments")) {
            if (!document_.isDict(segment)) throw std::invalid_argument("a segment is no dict");
            visit(segment);
            const std::int64_t ordinal =
                device ? *device : requiredNumber(segment, "device", "a segment");
            if (!device && ordinal < 0)
                throw std::invalid_argument("a device has the number " + std::to_string(ordinal));
            SnapshotDevice& to = deviceAt(ordinal);
            to.segments = true;
            to.reserved = checkedAdd(to.reserved, size(segment, "total_size", "a segment"));
            readBlocks(to, segment);
        }
    }
    void readBlocks(SnapshotDevice& to, PickleRef segment) {
        std::int64_t address = requiredNumber(segment, "address", "a segment");
        const auto blocks = document_.find(segment, "blocks");
        if (!blocks) return;
        for (const PickleRef item : listOf(*blocks, "blocks")) {
            if (!document_.isDict(item)) throw std::invalid_argument("a block is no dict");
            address = number(item, "address").value_or(address);
            const std::int64_t bytes = size(item, "size", "a block");
            readBlock(to, item, address, bytes);
            address = wrappingAdd(address, bytes);  // old blocks have no address of their own
        }
    }
    void readBlock(SnapshotDevice& to, PickleRef item, std::int64_t address, std::int64_t bytes) {
        const auto state = document_.find(item, "state");
        const auto name = state ? document_.text(*state) : std::nullopt;
        if (!name) throw std::invalid_argument("a block has no state");
        if (*name != "active_allocated") return;
        SnapshotBlock block{address, bytes, bytes, document_.find(item, "frames")};
        PickleRef sized = item;
        const char* key = "requested_size";
        if (const auto history = document_.find(item, "history");
            history && !document_.items(*history).empty()) {
            sized = document_.items(*history).front();  // the latest comes first
            key = "real_size";
            if (!block.frames) block.frames = document_.find(sized, "frames");
        }
        if (const auto asked = number(sized, key); asked && *asked >= 0 && *asked <= bytes)
            block.requested = *asked;
        to.blocks.push_back(block);
    }

    void readTraces(PickleRef list) {
        const auto& traces = listOf(list, "device_traces");
        for (std::size_t d = 0; d < traces.size(); ++d)
            readEntries(traces[d], "the events of a device", static_cast<std::int64_t>(d));
    }
    // One list of events. A list of such lists is read as well, as devices have it.
    void readHostTraces(PickleRef list) {
        const auto& items = document_.items(list);
        if (items.empty() || !document_.isList(items.front()))
            return readEntries(list, "host_traces", kSnapshotHost);
        for (const PickleRef each : listOf(list, "host_traces"))
            readEntries(each, "the events of host memory", kSnapshotHost);
    }
    void readEntries(PickleRef list, const char* what, std::int64_t device) {
        for (const PickleRef item : listOf(list, what)) {
            if (!document_.isDict(item)) throw std::invalid_argument("an event is no dict");
            deviceAt(device).entries.push_back(readEntry(item));
        }
    }
    SnapshotEntry readEntry(PickleRef item) const {
        const auto action = document_.find(item, "action");
        const auto name = action ? document_.text(*action) : std::nullopt;
        if (!name) throw std::invalid_argument("an event has no action");
        SnapshotEntry entry;
        entry.action = *name;
        entry.effect = effectOf(*name);
        entry.size = entry.effect == SnapshotEffect::None
                         ? std::max<std::int64_t>(0, number(item, "size").value_or(0))
                         : size(item, "size", "an event");
        // Of "oom" some versions of torch write what was free as the address.
        const auto address = number(item, "addr");
        if (*name == "oom") {
            entry.deviceFree = number(item, "device_free");
            if (!entry.deviceFree) entry.deviceFree = address;
        } else {
            entry.address = address.value_or(0);
        }
        entry.timeNs = timeOf(item);
        entry.metadata = textOf(item, "user_metadata");
        entry.frames = document_.find(item, "frames");
        return entry;
    }

    // Starts and ends of one name nest, and each device has its own.
    void readAnnotations(PickleRef list) {
        std::map<std::pair<std::int64_t, std::string_view>, std::vector<std::size_t>> open;
        std::vector<SnapshotAnnotation>& all = contents_.annotations;
        for (const PickleRef item : listOf(list, "external_annotations")) {
            if (!document_.isDict(item)) throw std::invalid_argument("an annotation is no dict");
            const std::string_view stage = textOf(item, "stage"), name = textOf(item, "name");
            const auto time = timeOf(item);
            const std::int64_t device = number(item, "device").value_or(0);
            if (!time || name.empty()) continue;
            auto& begun = open[{device, name}];
            if (stage == "START") {
                begun.push_back(all.size());
                all.push_back({name, device, *time, {}});
            } else if (stage == "END" && !begun.empty()) {
                all[begun.back()].endNs = std::max(*time, all[begun.back()].beginNs);
                begun.pop_back();
            }
        }
        std::stable_sort(all.begin(), all.end(),
                         [](const auto& a, const auto& b) { return a.beginNs < b.beginNs; });
    }

    const PickleDocument& document_;
    SnapshotContents contents_;
    std::set<PickleRef> visited_;
};

}  // namespace

SnapshotEffect effectOf(std::string_view action) {
    if (action == "alloc") return SnapshotEffect::Allocate;
    if (action == "free_requested") return SnapshotEffect::RequestFree;
    if (action == "free_completed") return SnapshotEffect::CompleteFree;
    if (action == "segment_alloc" || action == "segment_map") return SnapshotEffect::Reserve;
    if (action == "segment_free" || action == "segment_unmap") return SnapshotEffect::Release;
    return SnapshotEffect::None;  // oom, snapshot, annotate, …
}

SnapshotContents readSnapshot(const PickleDocument& document) {
    return SnapshotReader(document).run();
}

}  // namespace hw::core
