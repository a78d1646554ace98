// SPDX-License-Identifier: MIT
#include "core/import/torch_snapshot.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <stdexcept>

#include "core/import/checked.h"
#include "core/import/pickle_reader.h"
#include "core/import/trace_writer.h"
#include "core/session/call_stacks.h"

namespace hw::core {
namespace {

constexpr const char* kSnapshotHint =
    "the snapshot is damaged, cut short or of another kind; dump it again with "
    "torch.cuda.memory._dump_snapshot";

struct SnapshotBlock {  // in use when the snapshot was taken
    std::int64_t address = 0, size = 0, requested = 0;
    std::optional<PickleRef> frames;
};
struct Entry {
    std::string_view action;
    std::int64_t address = 0, size = 0;
    std::optional<std::int64_t> timeNs;
    std::optional<PickleRef> frames;
};
struct Device {
    std::string name;  // "cuda:0"
    std::vector<SnapshotBlock> blocks;
    std::vector<Entry> entries;
    std::int64_t reserved = 0;  // at the snapshot
    // While its events are written:
    std::int64_t id = 0, allocatedNow = 0, reservedNow = 0;
    std::unordered_map<std::int64_t, std::int64_t> live;  // address → storage
};

enum class Effect : std::uint8_t { None, Allocate, Free, Reserve, Release };
Effect effectOf(std::string_view action) {
    if (action == "alloc") return Effect::Allocate;
    if (action == "free_requested") return Effect::Free;
    if (action == "segment_alloc" || action == "segment_map") return Effect::Reserve;
    if (action == "segment_free" || action == "segment_unmap") return Effect::Release;
    return Effect::None;  // free_completed, snapshot, oom, …
}

class SnapshotImporter {
public:
    SnapshotImporter(const PickleDocument& document, SessionWriter& session)
        : document_(document), session_(session), writer_(session) {}

    Status run() {
        const PickleRef root = document_.root();
        if (document_.isDict(root)) {
            const auto segments = document_.find(root, "segments");
            const auto traces = document_.find(root, "device_traces");
            if (!segments && !traces)
                throw std::invalid_argument("there are no segments and no device_traces");
            if (segments) readSegments(*segments);
            if (traces) readTraces(*traces);
        } else if (document_.isList(root)) {
            readSegments(root);  // memory_snapshot(), and _snapshot() of torch 1.12 and 1.13
        } else {
            throw std::invalid_argument("the pickle holds no snapshot");
        }
        if (devices_.empty())
            throw std::invalid_argument("the snapshot holds no segment and no event");
        return write();
    }

private:
    // --- reading

    // A container that stands in several places would be walked as often.
    void visit(PickleRef container) {
        if (!visited_.insert(container).second)
            throw std::invalid_argument("one list stands in several places");
    }
    const std::vector<PickleRef>& listOf(PickleRef value, const char* what) {
        if (!document_.isList(value))
            throw std::invalid_argument(std::string(what) + " are no list");
        visit(value);
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
    Device& deviceAt(std::int64_t ordinal) {
        if (ordinal < 0 || ordinal > 4095)
            throw std::invalid_argument("a device has the number " + std::to_string(ordinal));
        Device& device = devices_[ordinal];
        device.name = "cuda:" + std::to_string(ordinal);
        return device;
    }

    void readSegments(PickleRef list) {
        for (const PickleRef segment : listOf(list, "segments")) {
            if (!document_.isDict(segment)) throw std::invalid_argument("a segment is no dict");
            visit(segment);
            Device& device = deviceAt(requiredNumber(segment, "device", "a segment"));
            device.reserved = checkedAdd(device.reserved, size(segment, "total_size", "a segment"));
            std::int64_t address = requiredNumber(segment, "address", "a segment");
            const auto blocks = document_.find(segment, "blocks");
            if (!blocks) continue;
            for (const PickleRef item : listOf(*blocks, "blocks")) {
                if (!document_.isDict(item)) throw std::invalid_argument("a block is no dict");
                address = number(item, "address").value_or(address);
                const std::int64_t bytes = size(item, "size", "a block");
                readBlock(device, item, address, bytes);
                address = wrappingAdd(address, bytes);  // old blocks have no address of their own
            }
        }
    }
    void readBlock(Device& device, PickleRef item, std::int64_t address, std::int64_t bytes) {
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
        device.blocks.push_back(block);
    }

    void readTraces(PickleRef list) {
        const auto& traces = listOf(list, "device_traces");
        for (std::size_t d = 0; d < traces.size(); ++d)
            for (const PickleRef item : listOf(traces[d], "the events of a device")) {
                if (!document_.isDict(item)) throw std::invalid_argument("an event is no dict");
                deviceAt(static_cast<std::int64_t>(d)).entries.push_back(readEntry(item));
            }
    }
    Entry readEntry(PickleRef item) const {
        const auto action = document_.find(item, "action");
        const auto name = action ? document_.text(*action) : std::nullopt;
        if (!name) throw std::invalid_argument("an event has no action");
        Entry entry;
        entry.action = *name;
        entry.size = *name == "oom" || *name == "snapshot" ? number(item, "size").value_or(0)
                                                           : size(item, "size", "an event");
        entry.address = number(item, "addr").value_or(0);
        if (const auto time = number(item, "time_us")) entry.timeNs = checkedMultiply(*time, 1000);
        entry.frames = document_.find(item, "frames");
        return entry;
    }

    // --- writing

    Status write() {
        require(session_.begin());
        ProcessRow process;
        process.command = "torch memory snapshot";
        process.framework = "pytorch";
        require(session_.insert(process));
        findTimes();
        for (auto& [ordinal, device] : devices_) start(ordinal, device);
        writeEntries();
        stateGaps();
        require(session_.setMeta(
            "no_step", "a torch memory snapshot tells allocations, not the ops that need them"));
        return session_.commit();
    }

    // Whether every event has a time, and the first one: what was there before has that.
    void findTimes() {
        std::optional<std::int64_t> first;
        for (const auto& [ordinal, device] : devices_)
            for (const Entry& entry : device.entries) {
                timed_ = timed_ && entry.timeNs.has_value();
                if (entry.timeNs) first = std::min(first.value_or(*entry.timeNs), *entry.timeNs);
            }
        timed_ = timed_ && first.has_value();
        beginNs_ = first.value_or(0);
    }

    // What the device held before its history began; without a history, what it holds.
    void start(std::int64_t ordinal, Device& device) {
        device.id = writer_.device("cuda", ordinal);
        if (device.entries.empty()) {
            device.reservedNow = device.reserved;
            for (const SnapshotBlock& block : device.blocks) {
                device.allocatedNow = checkedAdd(device.allocatedNow, block.size);
                const std::int64_t at = event(device, {"block", block.address, block.size, {}, {}});
                storage(device, block.address, block.size, block.frames, at);
            }
            stateOnly_ = true;
            return;
        }
        std::int64_t allocated = 0, reserved = 0;  // by the events
        std::unordered_map<std::int64_t, std::int64_t> held;
        for (const Entry& entry : device.entries) {
            const Effect effect = effectOf(entry.action);
            if (effect == Effect::Allocate) held[entry.address] = entry.size;
            if (effect == Effect::Free) held.erase(entry.address);
            if (effect == Effect::Allocate) allocated = checkedAdd(allocated, entry.size);
            if (effect == Effect::Free) allocated = checkedAdd(allocated, -entry.size);
            if (effect == Effect::Reserve) reserved = checkedAdd(reserved, entry.size);
            if (effect == Effect::Release) reserved = checkedAdd(reserved, -entry.size);
        }
        std::int64_t atSnapshot = 0;
        for (const SnapshotBlock& block : device.blocks) {
            const auto traced = held.find(block.address);
            const std::int64_t bytes = traced == held.end() ? block.requested : traced->second;
            atSnapshot = checkedAdd(atSnapshot, bytes);
            rounding_ = checkedAdd(rounding_, block.size - std::min(block.size, bytes));
        }
        device.allocatedNow = checkedAdd(atSnapshot, -allocated);
        device.reservedNow = checkedAdd(device.reserved, -reserved);
        if (device.allocatedNow < 0 || device.reservedNow < 0) {
            contradicts_ = true;
            device.allocatedNow = std::max<std::int64_t>(device.allocatedNow, 0);
            device.reservedNow = std::max<std::int64_t>(device.reservedNow, 0);
        }
        const std::int64_t at = event(device, {"initial", 0, device.allocatedNow, {}, {}});
        for (const SnapshotBlock& block : device.blocks)
            if (!held.contains(block.address))
                device.live[block.address] =
                    storage(device, block.address, block.requested, block.frames, at);
    }

    // Devices are merged by time; without times they follow each other.
    void writeEntries() {
        std::vector<std::pair<Device*, const Entry*>> order;
        for (auto& [ordinal, device] : devices_) {
            for (const Entry& entry : device.entries) order.emplace_back(&device, &entry);
            histories_ += device.entries.empty() ? 0 : 1;
        }
        if (timed_)
            std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
                return *a.second->timeNs < *b.second->timeNs;
            });
        for (const auto& [device, entry] : order) apply(*device, *entry);
    }
    void apply(Device& device, const Entry& entry) {
        const Effect effect = effectOf(entry.action);
        std::int64_t& level = effect == Effect::Allocate || effect == Effect::Free
                                  ? device.allocatedNow
                                  : device.reservedNow;
        if (effect == Effect::Allocate || effect == Effect::Reserve)
            level = checkedAdd(level, entry.size);
        if (effect == Effect::Free || effect == Effect::Release) {
            contradicts_ = contradicts_ || level < entry.size;
            level = std::max<std::int64_t>(0, level - entry.size);
        }
        const std::int64_t at = event(device, entry);
        if (effect == Effect::Allocate)
            device.live[entry.address] =
                storage(device, entry.address, entry.size, entry.frames, at);
        const auto freed =
            effect == Effect::Free ? device.live.find(entry.address) : device.live.end();
        if (freed != device.live.end()) {
            require(session_.setFreed(freed->second, at));
            device.live.erase(freed);
        }
    }

    std::int64_t event(const Device& device, const Entry& entry) {
        MemoryEventRow row;
        row.seq = seq_++;
        row.device = writer_.deviceOf(device.id).ordinal;
        if (timed_) row.timeNs = entry.timeNs.value_or(beginNs_);
        row.kind = entry.action;
        if (entry.address != 0) row.address = entry.address;
        const Effect effect = effectOf(entry.action);
        const bool less = effect == Effect::Free || effect == Effect::Release;
        row.bytes = Bytes(less ? -entry.size : entry.size);
        row.allocated = device.allocatedNow;
        row.reserved = device.reservedNow;
        writer_.memory(row);
        return *row.seq;
    }
    std::int64_t storage(const Device& device, std::int64_t address, std::int64_t bytes,
                         const std::optional<PickleRef>& frames, std::int64_t at) {
        StorageRow row;
        row.id = storages_++;
        row.bytes = Bytes(bytes);
        row.device = device.name;
        row.layer = frames ? layerOf(*frames) : std::nullopt;
        row.stack = frames ? stackOf(*frames) : std::nullopt;
        row.allocSeq = at;
        row.address = address;
        require(session_.insert(row));
        return row.id;
    }

    // Frames stand innermost first; a layer is the way to them from outside.
    std::optional<std::int64_t> layerOf(PickleRef frames) {
        constexpr std::size_t kDeepest = 64;
        const auto [at, isNew] = layers_.try_emplace(frames);
        if (!isNew) return at->second;
        const auto& stack = document_.items(frames);
        std::optional<std::int64_t> layer;
        for (std::size_t i = stack.size(); i-- > stack.size() - std::min(stack.size(), kDeepest);) {
            const std::string_view file = textOf(stack[i], "filename");
            const std::string_view function = textOf(stack[i], "name");
            if (file.empty() || function.empty()) continue;
            std::string name(file.substr(file.rfind('/') + 1));
            name += '(' + std::to_string(number(stack[i], "line").value_or(0)) + "): ";
            name += function;
            layer = writer_.layer(layer, name, "frame", " > ");
        }
        return layers_[frames] = layer;
    }

    std::optional<std::int64_t> stackOf(PickleRef frames) {
        const auto [at, isNew] = stacks_.try_emplace(frames);
        if (!isNew) return at->second;
        std::vector<SourceFrameRow> rows;
        const auto& stack = document_.items(frames);
        for (std::size_t i = std::min(stack.size(), kMostFrames); i-- > 0;) {
            SourceFrameRow row;
            row.file = textOf(stack[i], "filename");
            row.function = textOf(stack[i], "name");
            row.line = std::max<std::int64_t>(0, number(stack[i], "line").value_or(0));
            row.framework = isFrameworkFile(row.file);
            if (!row.file.empty() && !row.function.empty()) rows.push_back(std::move(row));
        }
        return stacks_[frames] = writer_.stack(rows);
    }

    void stateGaps() {
        writer_.gap("ops", "torch memory snapshots hold allocations, no ops, phases or kernels");
        if (stateOnly_)
            writer_.gap(
                "history",
                "a device has no recorded history: its blocks in use are listed by address, "
                "not in the order in which they were allocated");
        if (histories_ > 0 && !timed_)
            writer_.gap("times",
                        "the events have no times: they stand in their order" +
                            std::string(histories_ > 1 ? ", one device after the other, as "
                                                         "the order between devices is "
                                                         "unknown"
                                                       : ""));
        if (histories_ > 0)
            writer_.gap("start",
                        "what was allocated before the history began is known by the "
                        "snapshot alone, as event 'initial'");
        if (rounding_ > 0)
            writer_.gap("rounding",
                        "sizes are those that were asked for; the allocator's blocks "
                        "were " +
                            std::to_string(rounding_) + " bytes larger in all at the snapshot");
        if (contradicts_)
            writer_.gap("levels",
                        "the history frees more than the snapshot accounts for: allocated "
                        "and reserved bytes are too high by an unknown amount");
    }

    const PickleDocument& document_;
    SessionWriter& session_;
    TraceWriter writer_;
    std::map<std::int64_t, Device> devices_;
    std::set<PickleRef> visited_;
    static constexpr std::size_t kMostFrames = 256;  // of a deeper stack, the innermost ones
    std::map<PickleRef, std::optional<std::int64_t>> layers_, stacks_;
    std::int64_t seq_ = 0, storages_ = 0, rounding_ = 0, beginNs_ = 0;
    int histories_ = 0;
    bool timed_ = true, stateOnly_ = false, contradicts_ = false;
};

// By the first bytes; pickles of the first protocols have no mark, so those by their name.
bool looksPickled(const FileStart& file) {
    const std::string& head = file.head;
    if (head.size() > 2 && head[0] == '\x80' && head[1] >= 0 && head[1] <= 5) return true;
    std::filesystem::path name(file.path);
    if (name.extension() == ".gz") name.replace_extension();
    return name.extension() == ".pickle" || name.extension() == ".pkl";
}

}  // namespace

Status importTorchSnapshot(TextSource& source, SessionWriter& session) {
    const auto document = PickleDocument::read(source);
    if (!document) return document.error();
    return importing("torch memory snapshot", kSnapshotHint,
                     [&] { return SnapshotImporter(*document, session).run(); });
}

const ImportFormat& torchSnapshotFormat() {
    static const ImportFormat format{
        .name = "torch-snapshot",
        .patterns = {"*.pickle", "*.pickle.gz", "*.pkl", "*.pkl.gz"},
        .recognizes = [](const FileStart& file) { return looksPickled(file); },
        .read = readText<importTorchSnapshot>};
    return format;
}

}  // namespace hw::core
