// SPDX-License-Identifier: MIT
#include "core/import/torch_snapshot.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "core/import/checked.h"
#include "core/import/pickle_reader.h"
#include "core/import/snapshot_frames.h"
#include "core/import/snapshot_lifetimes.h"
#include "core/import/snapshot_reader.h"
#include "core/import/trace_writer.h"
#include "core/session/annotations.h"
#include "core/session/call_stacks.h"
#include "core/session/shortages.h"

namespace hw::core {
namespace {

constexpr const char* kSnapshotHint =
    "the snapshot is damaged, cut short or of another kind; dump it again with "
    "torch.cuda.memory._dump_snapshot";
constexpr const char* kBeforeHistory = "(before the history)";

std::int64_t signOf(SnapshotEffect effect) {
    if (effect == SnapshotEffect::Reserve) return 1;
    return effect == SnapshotEffect::Release ? -1 : 0;
}

class SnapshotImporter {
public:
    SnapshotImporter(const PickleDocument& document, SessionWriter& session)
        : document_(document), session_(session), writer_(session) {}

    Status run() {
        contents_ = readSnapshot(document_);
        require(session_.begin());
        ProcessRow process;
        process.command = "torch memory snapshot";
        process.framework = "pytorch";
        require(session_.insert(process));
        findTimes();
        for (auto& [ordinal, device] : contents_.devices) start(ordinal, device);
        writeEntries();
        writeStorages();
        writeAnnotations();
        if (!shortages_.empty())
            require(session_.setMeta(kShortagesKey, shortagesText(shortages_)));
        stateGaps();
        require(session_.setMeta(
            "no_step", "a torch memory snapshot tells allocations, not the ops that need them"));
        return session_.commit();
    }

private:
    /// A device while its events are written.
    struct Allocator {
        const SnapshotDevice* from = nullptr;
        std::int64_t id = 0, ordinal = 0;
        SnapshotLifetimes lifetimes;
        std::vector<std::int64_t> changes;  // of allocated bytes, by event
        std::vector<std::int64_t> seqs;     // of the events
        std::int64_t initialSeq = 0;        // of what was there before them
        std::int64_t allocated = 0, reserved = 0;
    };

    // Whether every event has a time, and the first one: what was there before has that.
    void findTimes() {
        std::optional<std::int64_t> first;
        for (const auto& [ordinal, device] : contents_.devices)
            for (const SnapshotEntry& entry : device.entries) {
                timed_ = timed_ && entry.timeNs.has_value();
                if (entry.timeNs) first = std::min(first.value_or(*entry.timeNs), *entry.timeNs);
            }
        timed_ = timed_ && first.has_value();
        beginNs_ = first.value_or(0);
    }

    // What the device held before its history began; without a history, what it holds.
    void start(std::int64_t ordinal, const SnapshotDevice& device) {
        const bool host = ordinal == kSnapshotHost;
        Allocator& made = allocators_.emplace_back();
        made.from = &device, made.ordinal = ordinal;
        made.id = writer_.device(host ? "host" : "cuda", ordinal);
        if (device.entries.empty()) return listBlocks(made);
        made.lifetimes = snapshotLifetimes(device);
        made.changes.resize(device.entries.size());
        for (const SnapshotLifetime& life : made.lifetimes.all) {
            std::int64_t& level = life.begin == SnapshotLifetime::kBefore
                                      ? made.allocated
                                      : made.changes[static_cast<std::size_t>(life.begin)];
            level = checkedAdd(level, life.size);
            if (life.end == SnapshotLifetime::kNever) continue;
            std::int64_t& after = made.changes[static_cast<std::size_t>(life.end)];
            after = checkedAdd(after, -life.size);
        }
        startReserved(made);
        rounding_ = checkedAdd(rounding_, made.lifetimes.rounding);
        unseen_ += made.lifetimes.unseen;
        unaccounted_ += made.lifetimes.unaccounted;
        before_ = before_ || made.allocated > 0;
        made.initialSeq = event(made, "initial", 0, made.allocated, {});
    }

    // Reserved bytes are known at the snapshot, and are followed back from there.
    void startReserved(Allocator& made) {
        std::int64_t level = 0, lowest = 0;
        for (const SnapshotEntry& entry : made.from->entries) {
            const std::int64_t sign = signOf(entry.effect);
            level = checkedAdd(level, sign * entry.size);
            lowest = std::min(lowest, level);
        }
        const std::int64_t least = -lowest;
        made.reserved = made.from->segments ? checkedAdd(made.from->reserved, -level) : least;
        contradicts_ = contradicts_ || made.reserved < least;
        made.reserved = std::max(made.reserved, least);
    }

    void listBlocks(Allocator& made) {
        made.reserved = made.from->reserved;
        for (const SnapshotBlock& block : made.from->blocks) {
            made.allocated = checkedAdd(made.allocated, block.size);
            const std::int64_t at = event(made, "block", block.address, block.size, {});
            StorageRow row = storage(made, block.address, block.size, block.frames);
            row.allocSeq = at;
            row.layer = layerOf(block.frames, {}, false);
            storages_.push_back(std::move(row));
        }
        stateOnly_ = true;
    }

    // Devices are merged by time; without times they follow each other.
    void writeEntries() {
        std::vector<std::pair<Allocator*, const SnapshotEntry*>> order;
        for (Allocator& each : allocators_) {
            for (const SnapshotEntry& entry : each.from->entries) order.emplace_back(&each, &entry);
            each.seqs.reserve(each.from->entries.size());
            histories_ += each.from->entries.empty() ? 0 : 1;
        }
        if (timed_)
            std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
                return *a.second->timeNs < *b.second->timeNs;
            });
        // A device's own order decides, whatever its times say.
        for (const auto& next : order)
            apply(*next.first, next.first->from->entries[next.first->seqs.size()]);
    }
    void apply(Allocator& device, const SnapshotEntry& entry) {
        device.allocated = checkedAdd(device.allocated, device.changes[device.seqs.size()]);
        device.reserved = checkedAdd(device.reserved, signOf(entry.effect) * entry.size);
        const bool less = entry.effect == SnapshotEffect::RequestFree ||
                          entry.effect == SnapshotEffect::CompleteFree ||
                          entry.effect == SnapshotEffect::Release;
        const std::int64_t at = event(device, entry.action, entry.address,
                                      less ? -entry.size : entry.size, entry.timeNs);
        device.seqs.push_back(at);
        if (entry.action == "oom") noteShortage(device, entry);
    }
    void noteShortage(const Allocator& device, const SnapshotEntry& entry) {
        if (shortages_.size() >= kMostShortages) return;
        Shortage shortage;
        shortage.device = writer_.deviceOf(device.id).label();
        shortage.ordinal = device.ordinal;
        shortage.seq = device.seqs.back();
        shortage.timeNs = timed_ ? entry.timeNs.value_or(beginNs_) : 0;
        shortage.asked = Bytes(entry.size);
        if (entry.deviceFree) shortage.free = Bytes(std::max<std::int64_t>(0, *entry.deviceFree));
        shortage.allocated = Bytes(device.allocated);
        if (const auto* frames = entry.frames ? &framesOf(*entry.frames) : nullptr) {
            const auto own = std::find_if(frames->rbegin(), frames->rend(),
                                          [](const auto& frame) { return !frame.framework; });
            if (!frames->empty())
                shortage.place = frameText(own != frames->rend() ? *own : frames->back());
        }
        shortages_.push_back(std::move(shortage));
    }

    std::int64_t event(const Allocator& device, std::string_view kind, std::int64_t address,
                       std::int64_t bytes, std::optional<std::int64_t> timeNs) {
        MemoryEventRow row;
        row.seq = seq_++;
        row.device = device.ordinal;
        if (timed_) row.timeNs = timeNs.value_or(beginNs_);
        row.kind = kind;
        if (address != 0) row.address = address;
        row.bytes = Bytes(bytes);
        row.allocated = device.allocated;
        row.reserved = device.reserved;
        writer_.memory(row);
        return *row.seq;
    }

    // --- storages

    StorageRow storage(const Allocator& device, std::int64_t address, std::int64_t bytes,
                       const std::optional<PickleRef>& frames) {
        StorageRow row;
        row.bytes = Bytes(bytes);
        row.device = writer_.deviceOf(device.id).label();
        row.address = address;
        row.stack = frames ? stackOf(*frames) : std::nullopt;
        return row;
    }
    void writeStorages() {
        for (const Allocator& device : allocators_)
            for (const SnapshotLifetime& life : device.lifetimes.all) {
                const bool before = life.begin == SnapshotLifetime::kBefore;
                StorageRow row = storage(device, life.address, life.size, life.frames);
                row.allocSeq =
                    before ? device.initialSeq : device.seqs[static_cast<std::size_t>(life.begin)];
                if (life.end != SnapshotLifetime::kNever)
                    row.freeSeq = device.seqs[static_cast<std::size_t>(life.end)];
                row.layer = layerOf(life.frames, life.metadata, before);
                storages_.push_back(std::move(row));
            }
        std::stable_sort(storages_.begin(), storages_.end(),
                         [](const auto& a, const auto& b) { return a.allocSeq < b.allocSeq; });
        std::int64_t id = 0;
        for (StorageRow& row : storages_) {
            row.id = id++;
            require(session_.insert(row));
        }
    }

    const std::vector<SourceFrameRow>& framesOf(PickleRef list) {
        const auto [at, isNew] = frames_.try_emplace(list);
        if (isNew) at->second = snapshotFrames(document_, list);
        return at->second;
    }
    std::optional<std::int64_t> stackOf(PickleRef list) {
        const auto [at, isNew] = stacks_.try_emplace(list);
        if (isNew) at->second = writer_.stack(framesOf(list));
        return at->second;
    }

    // A layer is the way through the program's Python to the operator, then what the program
    // itself said of the memory.
    std::optional<std::int64_t> layerOf(const std::optional<PickleRef>& list,
                                        const std::vector<std::string_view>& metadata,
                                        bool before) {
        std::optional<std::int64_t> layer;
        if (list) layer = layerOfFrames(*list);
        if (!layer && before) layer = writer_.layer({}, kBeforeHistory, "frame", " > ");
        for (const std::string_view note : metadata)
            layer = writer_.layer(layer, std::string(note), "metadata", " > ");
        return layer;
    }
    std::optional<std::int64_t> layerOfFrames(PickleRef list) {
        const auto [at, isNew] = layers_.try_emplace(list);
        if (!isNew) return at->second;
        const std::vector<SourceFrameRow>& frames = framesOf(list);
        std::optional<std::int64_t> layer;
        const std::size_t deepest = std::min(frames.size(), kDeepest);
        for (std::size_t i = 0; i < frames.size(); ++i) {
            const SourceFrameRow& frame = frames[i];
            const bool python = frame.file.ends_with(".py") || frame.file.starts_with("<");
            const bool last = i + 1 == frames.size();
            if (!last && (i >= deepest || !python)) continue;
            std::string name = frame.function;
            if (python)
                name = frame.file.substr(frame.file.rfind('/') + 1) + "(" +
                       std::to_string(frame.line) + "): " + frame.function;
            layer = writer_.layer(layer, name, "frame", " > ");
        }
        return layers_[list] = layer;
    }

    void writeAnnotations() {
        const std::int64_t endNs = [&] {
            std::int64_t last = beginNs_;
            for (const auto& [ordinal, device] : contents_.devices)
                for (const SnapshotEntry& entry : device.entries)
                    last = std::max(last, entry.timeNs.value_or(last));
            return last;
        }();
        for (const SnapshotAnnotation& each : contents_.annotations) {
            RangeRow row;
            row.kind = kAnnotationKind;
            row.name = each.name;
            row.thread = each.device;
            row.beginNs = each.beginNs;
            row.endNs = each.endNs.value_or(std::max(endNs, each.beginNs));
            require(session_.insert(row));
        }
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
        if (before_)
            writer_.gap("start",
                        "what was allocated before the history began is known by its free or by "
                        "the snapshot alone, as event 'initial': it has no call stack");
        if (rounding_ > 0)
            writer_.gap("rounding",
                        "sizes are those that were asked for; the allocator's blocks "
                        "were " +
                            std::to_string(rounding_) + " bytes larger in all at the snapshot");
        if (unseen_ > 0)
            writer_.gap("unseen", std::to_string(unseen_) +
                                      " allocations or frees are missing from the history: what "
                                      "lies between two events of an address counts until the "
                                      "second one");
        if (unaccounted_ > 0)
            writer_.gap("levels", std::to_string(unaccounted_) +
                                      " storages are never freed in the history, but are not in "
                                      "use in the snapshot: they count to its end");
        if (contradicts_)
            writer_.gap("reserved",
                        "the history gives back more than the snapshot accounts for: reserved "
                        "bytes are too high by an unknown amount");
    }

    const PickleDocument& document_;
    SessionWriter& session_;
    TraceWriter writer_;
    SnapshotContents contents_;
    std::vector<Allocator> allocators_;
    std::vector<StorageRow> storages_;
    std::vector<Shortage> shortages_;
    static constexpr std::size_t kDeepest = 64;
    std::map<PickleRef, std::vector<SourceFrameRow>> frames_;
    std::map<PickleRef, std::optional<std::int64_t>> layers_, stacks_;
    std::int64_t seq_ = 0, rounding_ = 0, beginNs_ = 0, unseen_ = 0, unaccounted_ = 0;
    int histories_ = 0;
    bool timed_ = true, before_ = false, stateOnly_ = false, contradicts_ = false;
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
