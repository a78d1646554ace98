// SPDX-License-Identifier: MIT
// What the programs of cut_relaxation.h know of a step and of the stages at which it is cut.
#pragma once

#include <span>
#include <vector>

#include "core/memory/stage_model.h"

namespace hw::planners {

/// A storage as the program sees it.
struct CutSubject {
    bool counts = false;                   // it has bytes, and enough of them
    bool rebuildable = false;              // otherwise, once evicted it is gone
    core::StageIndex born = core::kNone;   // there from the stage after this one
    core::StageIndex until = core::kNone;  // last stage that may read it
    /// Not rebuildable: last stage whose op reads or writes it for the first time; it is there
    /// until then in any plan. Views do not count, they may be made at any time.
    core::StageIndex stays = core::kNone;
};

/// A view and two stages, one after the other, that read it; a cut lies between them.
struct CutView {
    core::OpIndex view = core::kNone;
    core::StorageIndex storage = core::kNone;
};

class CutContext {
public:
    /// `model` must outlive the context.
    CutContext(const core::StageModel& model, core::Bytes budget,
               const std::vector<core::StageIndex>& cuts);

    const core::StageModel& model() const { return model_; }
    const core::TrainingGraph& graph() const { return graph_; }
    core::Bytes budget() const { return budget_; }
    const CutSubject& subject(core::StorageIndex s) const { return subjects_[s]; }
    std::size_t cuts() const { return cuts_.size(); }
    core::StageIndex cut(std::size_t k) const { return cuts_[k]; }
    /// First stage after the segment of cut k.
    core::StageIndex segmentEnd(std::size_t k) const {
        return k + 1 < cuts_.size() ? cuts_[k + 1] : model_.end + 1;
    }
    bool firstRunIsTied(core::StageIndex stage) const {
        return stage == model_.end || !graph_.ops[model_.opOf(stage)].viewOnly;
    }

    /// Storages that may be resident at cut k, and matter; ascending.
    const std::vector<core::StorageIndex>& thereAt(std::size_t k) const { return there_[k]; }
    bool exists(core::StorageIndex s, std::size_t k) const {
        return subjects_[s].born < cuts_[k] && subjects_[s].until >= cuts_[k];
    }
    /// Is resident at cut k in any plan.
    bool fixed(core::StorageIndex s, std::size_t k) const {
        return !subjects_[s].rebuildable && subjects_[s].born < cuts_[k] &&
               subjects_[s].stays >= cuts_[k];
    }
    /// Views with two readers that cut k lies between, and no cut before it.
    const std::vector<CutView>& viewsAcross(std::size_t k) const { return views_[k]; }
    /// Last op captured before cut k that takes the storage to the version; kNone: it cannot be
    /// rebuilt.
    core::OpIndex rebuilder(core::StorageIndex s, std::int32_t version, std::size_t k) const;

    /// Calls visit(storage, version) for what the op, or the end of the step, reads or writes.
    template <class Visit>
    void forEachRead(core::OpIndex op, Visit visit) const {
        const bool end = op == static_cast<core::OpIndex>(graph_.ops.size());
        using Uses = std::span<const core::Use>;
        for (const core::Use& use : end ? Uses(finals_) : Uses(graph_.ops[op].inputs))
            visit(graph_.storageOf(use.tensor), use.version);
        if (end) return;
        for (const core::Write& write : graph_.ops[op].writes)
            visit(write.storage, write.versionBefore);
    }

private:
    void describeSubjects();
    void chooseIgnored();
    void listPresent();
    void listViews();

    const core::StageModel& model_;
    const core::TrainingGraph& graph_;
    core::Bytes budget_;
    std::vector<core::StageIndex> cuts_;
    std::vector<core::Use> finals_;
    std::vector<CutSubject> subjects_;                    // per storage
    std::vector<std::vector<core::StorageIndex>> there_;  // per cut
    std::vector<std::vector<CutView>> views_;             // per cut
};

}  // namespace hw::planners
