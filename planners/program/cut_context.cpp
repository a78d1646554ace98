// SPDX-License-Identifier: MIT
#include "planners/program/cut_context.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace hw::planners {

using namespace hw::core;

namespace {

constexpr double kIgnoredShare = 3e-3;  // of the budget: smallest items counted as no bytes

}  // namespace

CutContext::CutContext(const StageModel& model, Bytes budget, const std::vector<StageIndex>& cuts)
    : model_(model),
      graph_(*model.graph),
      budget_(budget),
      subjects_(graph_.storages.size()),
      there_(cuts.size()),
      views_(cuts.size()) {
    // Only ops that keep their place mark an instant; views do not.
    for (StageIndex cut : cuts) {
        while (cut < model.end && graph_.ops[model.stageOps[cut]].viewOnly) ++cut;
        cuts_.push_back(cut);
    }
    finals_.reserve(graph_.finalTensors.size());
    for (const TensorIndex tensor : graph_.finalTensors) {
        const Storage& storage = graph_.storages[graph_.storageOf(tensor)];
        finals_.push_back({tensor, static_cast<std::int32_t>(storage.writers.size())});
    }
    describeSubjects();
    chooseIgnored();
    listPresent();
    listViews();
}

void CutContext::describeSubjects() {
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(subjects_.size()); ++s) {
        const Storage& storage = graph_.storages[s];
        CutSubject& subject = subjects_[s];
        subject.until = model_.storageNeededUntil[s];
        if (storage.isConstant()) continue;
        subject.born = model_.stageOf[storage.creator];
        const auto& writes = graph_.ops[storage.creator].writes;
        subject.rebuildable = std::none_of(writes.begin(), writes.end(), [&](const Write& w) {
            return graph_.storages[w.storage].isConstant();
        });
    }
    StageIndex last = kNone;  // of the ops before a later constant
    for (const Event& event : graph_.events) {
        if (event.kind == Event::Kind::Compute && !graph_.ops[event.index].viewOnly)
            last = model_.stageOf[event.index];
        if (event.kind == Event::Kind::Constant) subjects_[event.index].born = last;
    }
    for (StageIndex stage = 0; stage <= model_.end; ++stage)
        if (firstRunIsTied(stage))
            forEachRead(model_.opOf(stage),
                        [&](StorageIndex s, std::int32_t) { subjects_[s].stays = stage; });
}

void CutContext::chooseIgnored() {
    std::vector<StorageIndex> bySize(subjects_.size());
    std::iota(bySize.begin(), bySize.end(), 0);
    const auto bytes = [&](StorageIndex s) { return graph_.storages[s].bytes; };
    std::stable_sort(bySize.begin(), bySize.end(),
                     [&](StorageIndex a, StorageIndex b) { return bytes(a) < bytes(b); });
    double sum = 0;
    for (const StorageIndex s : bySize) {
        if (bytes(s) <= Bytes(0)) continue;
        if (subjects_[s].rebuildable) sum += static_cast<double>(bytes(s).count());
        subjects_[s].counts =
            !subjects_[s].rebuildable || sum > kIgnoredShare * static_cast<double>(budget_.count());
    }
}

void CutContext::listPresent() {
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(subjects_.size()); ++s) {
        const CutSubject& subject = subjects_[s];
        const StageIndex last = std::max(subject.until, subject.stays);
        const auto first = std::upper_bound(cuts_.begin(), cuts_.end(), subject.born);
        for (auto cut = first; cut != cuts_.end() && *cut <= last; ++cut)
            there_[static_cast<std::size_t>(cut - cuts_.begin())].push_back(s);
    }
}

void CutContext::listViews() {
    std::vector<StageIndex> before(graph_.ops.size(), kNone);  // per view: last reader so far
    for (StageIndex stage = 0; stage <= model_.end; ++stage) {
        if (!firstRunIsTied(stage)) continue;
        for (const OpIndex view : model_.lazyViews[model_.opOf(stage)]) {
            const StageIndex reader = std::exchange(before[view], stage);
            if (reader == kNone) continue;
            const auto cut = std::upper_bound(cuts_.begin(), cuts_.end(), reader);
            if (cut == cuts_.end() || *cut > stage) continue;
            views_[static_cast<std::size_t>(cut - cuts_.begin())].push_back(
                {view, graph_.storageOf(graph_.ops[view].inputs.front().tensor)});
        }
    }
}

OpIndex CutContext::rebuilder(StorageIndex s, std::int32_t version, std::size_t k) const {
    if (!subjects_[s].rebuildable) return kNone;
    const ShortList<OpIndex>& writers = graph_.storages[s].writers;
    const auto before =
        std::partition_point(writers.begin(), writers.begin() + version,
                             [&](OpIndex writer) { return model_.stageOf[writer] < cuts_[k]; });
    return before == writers.begin() ? graph_.storages[s].creator : *(before - 1);
}

}  // namespace hw::planners
