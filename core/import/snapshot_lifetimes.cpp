// SPDX-License-Identifier: MIT
#include "core/import/snapshot_lifetimes.h"

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

#include "core/import/checked.h"

namespace hw::core {
namespace {

class LifetimeFinder {
public:
    explicit LifetimeFinder(const SnapshotDevice& device) : device_(device) {}

    SnapshotLifetimes run() {
        if (device_.entries.size() >= static_cast<std::size_t>(SnapshotLifetime::kNever))
            throw std::invalid_argument("a device has too many events");
        for (std::size_t i = 0; i < device_.entries.size(); ++i)
            take(device_.entries[i], static_cast<std::int32_t>(i));
        addBlocks();
        std::stable_sort(found_.all.begin(), found_.all.end(),
                         [](const auto& a, const auto& b) { return a.begin < b.begin; });
        return std::move(found_);
    }

private:
    struct Freed {
        std::int32_t at = 0;     // the event
        bool completes = false;  // `free_completed` of the same storage is still to come
    };

    void take(const SnapshotEntry& entry, std::int32_t now) {
        switch (entry.effect) {
            case SnapshotEffect::Allocate:
                allocate(entry, now);
                break;
            case SnapshotEffect::RequestFree:
                release(entry, now, true);
                break;
            case SnapshotEffect::CompleteFree:
                release(entry, now, false);
                break;
            default:
                if (entry.action == "annotate" && !entry.metadata.empty()) annotate(entry);
        }
    }

    void allocate(const SnapshotEntry& entry, std::int32_t now) {
        if (const auto old = live_.find(entry.address); old != live_.end()) {
            found_.all[old->second].end = now;
            ++found_.unseen;
        }
        SnapshotLifetime life{entry.address, entry.size, now, SnapshotLifetime::kNever,
                              entry.frames,  {}};
        if (!entry.metadata.empty()) life.metadata.push_back(entry.metadata);
        live_[entry.address] = found_.all.size();
        found_.all.push_back(std::move(life));
        freed_.erase(entry.address);
    }

    void release(const SnapshotEntry& entry, std::int32_t now, bool requested) {
        const auto live = live_.find(entry.address);
        const auto freed = freed_.find(entry.address);
        if (live != live_.end()) {
            found_.all[live->second].end = now;
            live_.erase(live);
        } else if (freed != freed_.end() && freed->second.completes && !requested) {
            freed->second.completes = false;
            return;
        } else {
            add({entry.address, entry.size, unseenBegin(entry.address), now, {}, {}});
        }
        freed_[entry.address] = {now, requested};
    }

    // Since when an address has been in use whose allocation is not in the history.
    std::int32_t unseenBegin(std::int64_t address) {
        const auto freed = freed_.find(address);
        if (freed == freed_.end()) return SnapshotLifetime::kBefore;
        ++found_.unseen;
        return freed->second.at;
    }

    void add(SnapshotLifetime life) {
        if (life.begin == SnapshotLifetime::kBefore)
            if (const auto notes = early_.find(life.address); notes != early_.end())
                life.metadata = std::move(notes->second);
        found_.all.push_back(std::move(life));
    }

    void annotate(const SnapshotEntry& entry) {
        const auto live = live_.find(entry.address);
        if (live != live_.end())
            found_.all[live->second].metadata.push_back(entry.metadata);
        else if (!freed_.contains(entry.address))
            early_[entry.address].push_back(entry.metadata);
    }

    void addBlocks() {
        std::size_t inUse = 0;
        for (const SnapshotBlock& block : device_.blocks) {
            std::int64_t bytes = block.requested;
            if (const auto live = live_.find(block.address); live != live_.end()) {
                SnapshotLifetime& life = found_.all[live->second];
                if (!life.frames) life.frames = block.frames;
                bytes = life.size;
                ++inUse;
            } else {
                add({block.address,
                     block.requested,
                     unseenBegin(block.address),
                     SnapshotLifetime::kNever,
                     block.frames,
                     {}});
            }
            found_.rounding = checkedAdd(found_.rounding, block.size - std::min(block.size, bytes));
        }
        if (device_.segments && live_.size() > inUse)
            found_.unaccounted = static_cast<std::int64_t>(live_.size() - inUse);
    }

    const SnapshotDevice& device_;
    SnapshotLifetimes found_;
    std::unordered_map<std::int64_t, std::size_t> live_;  // by address: index of the lifetime
    std::unordered_map<std::int64_t, Freed> freed_;       // by address, until allocated again
    std::unordered_map<std::int64_t, std::vector<std::string_view>> early_;  // annotations
};

}  // namespace

SnapshotLifetimes snapshotLifetimes(const SnapshotDevice& device) {
    return LifetimeFinder(device).run();
}

}  // namespace hw::core
