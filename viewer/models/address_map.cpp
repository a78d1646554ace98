// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/address_map.h"

#include <QObject>
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "core/import/import.h"
#include "core/memory/plan_layout.h"
#include "core/session/load_menu.h"
#include "core/session/recorded_addresses.h"

namespace hw::viewer {
namespace {

using core::Bytes;
using core::kNone;

// Addresses further apart than this share of the touched bytes are drawn side by side.
constexpr std::int64_t kSeamShare = 50;

// Live bytes at the peak and the longest hole then, from the drawn blocks.
void measure(AddressMap& map) {
    std::vector<std::pair<std::int32_t, std::int64_t>> changes;
    for (const MapBlock& block : map.blocks) {
        changes.emplace_back(block.first, block.bytes);
        changes.emplace_back(block.end, -block.bytes);
    }
    std::sort(changes.begin(), changes.end());
    std::int64_t live = 0, peak = 0;
    for (const auto& [moment, change] : changes)
        if ((live += change) > peak) peak = live, map.peakMoment = moment;
    map.livePeak = Bytes(peak);
    std::vector<std::pair<std::int64_t, std::int64_t>> taken;
    for (const MapBlock& block : map.blocks)
        if (block.first <= map.peakMoment && map.peakMoment < block.end)
            taken.emplace_back(block.offset, block.offset + block.bytes);
    std::sort(taken.begin(), taken.end());
    std::int64_t free = 0, hole = 0;
    for (const auto& [from, to] : taken) {
        hole = std::max(hole, from - free);
        free = std::max(free, to);
    }
    map.hole = Bytes(hole);
    std::stable_sort(map.blocks.begin(), map.blocks.end(),
                     [](const MapBlock& a, const MapBlock& b) { return a.first < b.first; });
}

// Drawn addresses without what was never touched.
void closeUp(AddressMap& map) {
    std::vector<std::pair<std::int64_t, std::int64_t>> parts;
    for (const MapBlock& block : map.blocks)
        parts.emplace_back(block.offset, block.offset + block.bytes);
    std::sort(parts.begin(), parts.end());
    std::vector<std::pair<std::int64_t, std::int64_t>> touched;
    std::int64_t total = 0;
    for (const auto& [from, to] : parts) {
        if (touched.empty() || from > touched.back().second)
            touched.emplace_back(from, to), total += to - from;
        else if (to > touched.back().second)
            total += to - std::exchange(touched.back().second, to);
    }
    const std::int64_t widest = std::max<std::int64_t>(1, total / kSeamShare);
    std::vector<std::pair<std::int64_t, std::int64_t>> shifts;  // from an address on
    std::int64_t drawn = 0, end = 0;
    for (const auto& [from, to] : touched) {
        const bool seam = shifts.empty() || from - end > widest;
        if (seam) {
            if (!shifts.empty()) map.seams.push_back(drawn);
            shifts.emplace_back(from, drawn - from);
        }
        drawn = to + shifts.back().second;
        end = to;
    }
    for (MapBlock& block : map.blocks)
        block.offset += std::prev(std::upper_bound(shifts.begin(), shifts.end(),
                                                   std::pair(block.offset, INT64_MAX)))
                            ->second;
    map.span = Bytes(drawn);
}

void addStorages(const Document& document, const core::Session& session, AddressMap& map) {
    const auto addresses = core::storageAddresses(session);
    if (!addresses || addresses->empty()) return;
    for (const Lifetime& lifetime : document.curve.lifetimes) {
        const core::Storage& storage = document.graph.storages[lifetime.storage];
        const auto at = addresses->find(storage.sessionId);
        if (at == addresses->end() || storage.bytes <= Bytes(0)) continue;
        map.blocks.push_back({lifetime.first, lifetime.last + 1, at->second, storage.bytes.count(),
                              document.bands.of(storage), lifetime.storage, storage.creator,
                              at->second, storage.sessionId});
    }
}

// Of so many events only some storages are loaded.
void addBlocks(const Document& document, const core::Session& session, AddressMap& map) {
    const auto blocks = core::recordedBlocks(session, document.ordinal);
    if (!blocks) return;
    std::unordered_map<std::int64_t, core::StorageIndex> loaded;
    for (std::size_t s = 0; s < document.graph.storages.size(); ++s)
        loaded[document.graph.storages[s].sessionId] = static_cast<core::StorageIndex>(s);
    // A series has a moment a column of the picture, not one an event.
    const auto momentOf = [&](std::int64_t clockNs, std::int32_t event) {
        return !document.series ? event
                                : static_cast<std::int32_t>(document.curve.momentAt(
                                      document.series->timeOf(clockNs, event)));
    };
    for (const core::RecordedBlock& block : *blocks) {
        const std::int32_t first = momentOf(block.beginNs, block.first);
        const std::int32_t end =
            document.series ? std::max(first + 1, momentOf(block.endNs, block.end)) : block.end;
        const auto at = static_cast<std::size_t>(first);
        const core::OpIndex op =
            at < document.curve.moments.size() ? document.curve.moments[at].op : kNone;
        const auto known = loaded.find(block.storage);
        const core::StorageIndex storage = known == loaded.end() ? kNone : known->second;
        map.blocks.push_back({first, end, block.address, block.bytes.count(),
                              document.bands.of(block.storage, block.category), storage, op,
                              block.address, block.storage});
    }
}

}  // namespace

AddressMap packedMap(const core::TrainingGraph& graph, const core::Schedule& schedule,
                     const core::Signatures& signatures, const std::function<bool()>& cancelled) {
    AddressMap map;
    const core::ScheduleBlocks made =
        core::scheduleBlocks(graph, schedule, {.signatures = &signatures});
    core::PackOptions options;
    options.cancelled = cancelled;
    const core::Packing packing = core::packBlocks(made.blocks, options);
    const core::Fragmentation figures = core::fragmentation(made.blocks, packing);
    map.span = packing.arena;
    map.lowerBound = packing.lowerBound;

    // The first instant of each action tells which moment an instant belongs to.
    std::vector<std::int64_t> begins{INT64_MIN};
    std::vector<std::int32_t> momentOf{0};
    std::int32_t moment = 0;
    for (std::size_t a = 0; a < schedule.size(); ++a) {
        begins.push_back(made.beginOfAction[a]);
        momentOf.push_back(moment);
        if (schedule[a].takesTime()) ++moment;
        begins.push_back(made.beginOfAction[a + 1] - 1);
        momentOf.push_back(moment);
    }
    const auto momentAt = [&](std::int64_t instant) {
        const auto after = std::upper_bound(begins.begin(), begins.end(), instant);
        return momentOf[static_cast<std::size_t>(after - begins.begin()) - 1];
    };
    for (std::size_t b = 0; b < made.blocks.size(); ++b) {
        const core::Block& block = made.blocks[b];
        if (!block.takesSpace()) continue;
        const core::BlockOwner& owner = made.owners[b];
        const std::int32_t first = momentAt(block.begin);
        map.blocks.push_back(
            {first, std::max(first + 1, momentAt(block.end)), packing.offsets[b].count(),
             block.size.count(),
             bandOf(owner.storage == kNone ? core::Category::Workspace
                                           : graph.storages[owner.storage].category),
             owner.storage, owner.op});
    }
    measure(map);
    map.livePeak = figures.livePeak;  // exact: the instants inside of an op count
    map.hole = figures.largestHoleAtPeak;
    return map;
}

AddressMap packedMap(const Document& document, const PlanEntry* plan,
                     const std::function<bool()>& cancelled) {
    core::Signatures signatures;
    if (document.graph.costs == core::CostSet::Measured)
        if (auto session = core::openAny(document.path))
            if (auto found = core::loadSignaturesUnder(*session, document.graph,
                                                       plan ? plan->chosen : core::Menu()))
                signatures = std::move(*found);
    if (!plan) return packedMap(document.graph, document.baseline, signatures, cancelled);
    AddressMap map = packedMap(document.graphOf(*plan), plan->schedule, signatures, cancelled);
    // What only the plan's implementations make has no storage in the recorded step.
    for (MapBlock& block : map.blocks)
        if (block.storage >= static_cast<core::StorageIndex>(document.graph.storages.size()))
            block.storage = kNone;
    return map;
}

AddressMap recordedMap(const Document& document) {
    AddressMap map;
    map.recorded = true;
    core::Result<core::Session> session = core::openAny(document.path);
    if (!session) {
        map.why = toQString(session.error().what);
        return map;
    }
    if (document.plannable)
        addStorages(document, *session, map);
    else
        addBlocks(document, *session, map);
    if (map.blocks.empty()) {
        map.why = QObject::tr("no addresses were recorded");
        return map;
    }
    closeUp(map);
    measure(map);
    if (document.series)  // blocks that share a moment there need not have been there together
        map.livePeak = document.curve.peak,
        map.peakMoment = static_cast<std::int32_t>(document.curve.peakMoment);
    return map;
}

}  // namespace hw::viewer
