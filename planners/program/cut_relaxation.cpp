// SPDX-License-Identifier: MIT
#include "planners/program/cut_relaxation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace hw::planners {

using namespace hw::core;

namespace {

constexpr double kIgnoredShare = 3e-3;  // of the budget: smallest items counted as no bytes

// A storage as the program sees it.
struct Subject {
    bool counts = false;       // it has bytes, and enough of them
    bool rebuildable = false;  // otherwise, once evicted it is gone
    StageIndex born = kNone;   // there from the stage after this one
    StageIndex until = kNone;  // last stage that may read it
    /// Not rebuildable: last stage whose op reads or writes it for the first time; it is there
    /// until then in any plan. Views do not count, they may be made at any time.
    StageIndex stays = kNone;
};

// Builds the program row by row.
class CutProgram {
public:
    CutProgram(const StageModel& model, Bytes budget, const std::vector<StageIndex>& cuts)
        : model_(model),
          graph_(*model.graph),
          budget_(budget),
          programTime_(graph_.totalTime()),
          subjects_(graph_.storages.size()),
          rerun_(cuts.size()),
          resident_(cuts.size()) {
        // Only ops that keep their place mark an instant; views do not.
        for (StageIndex cut : cuts) {
            while (cut < model.end && graph_.ops[model.stageOps[cut]].viewOnly()) ++cut;
            cuts_.push_back(cut);
        }
        finals_.reserve(graph_.finalTensors.size());
        for (const TensorIndex tensor : graph_.finalTensors) {
            const Storage& storage = graph_.storages[graph_.storageOf(tensor)];
            finals_.push_back({tensor, static_cast<std::int32_t>(storage.writers.size())});
        }
    }

    /// False when a cut alone exceeds the budget.
    bool build() {
        describeSubjects();
        chooseIgnored();
        for (std::size_t k = 0; k < cuts_.size(); ++k) {
            addResidents(k);
            for (StageIndex stage = cuts_[k]; stage < segmentEnd(k); ++stage)
                if (firstRunIsTied(stage))
                    forEachRead(model_.opOf(stage), [&](StorageIndex s, std::int32_t version) {
                        cover(k, s, version);
                    });
            if (k > 0)
                for (const auto& [s, column] : resident_[k])
                    if (subjects_[s].born < cuts_[k - 1])
                        addAtMost(column, k - 1, s,
                                  subjects_[s].rebuildable ? graph_.storages[s].creator : kNone);
            if (!addMemory(k)) return false;
        }
        addViews();
        return true;
    }

    CutSolution solve(const CutOptions& options) const {
        SolveOptions solving;
        solving.limits = options.limits;
        solving.integer = options.integer;
        solving.cancelled = options.cancelled;
        const LinearSolution found = program_.solve(solving);
        CutSolution solution;
        solution.status = found.status;
        if (found.status == SolveStatus::Infeasible) return solution;
        solution.bound = graph_.totalTime() + programTime_.atLeast(found.bound);
        if (found.values) solution.resident = residents(*found.values);
        return solution;
    }

private:
    std::vector<std::vector<bool>> residents(const std::vector<double>& values) const {
        std::vector<std::vector<bool>> flags(cuts_.size(),
                                             std::vector<bool>(model_.itemCount(), false));
        for (std::size_t k = 0; k < cuts_.size(); ++k)
            for (ItemIndex i = 0; i < static_cast<ItemIndex>(model_.itemCount()); ++i) {
                const auto column = resident_[k].find(model_.storages[i]);
                flags[k][i] = column == resident_[k].end() ? exists(model_.storages[i], k)
                                                           : values[column->second] > 0.5;
            }
        return flags;
    }

    StageIndex segmentEnd(std::size_t k) const {
        return k + 1 < cuts_.size() ? cuts_[k + 1] : model_.end + 1;
    }
    bool firstRunIsTied(StageIndex stage) const {
        return stage == model_.end || !graph_.ops[model_.opOf(stage)].viewOnly();
    }
    /// May be resident at cut k, and matters.
    bool exists(StorageIndex s, std::size_t k) const {
        return subjects_[s].born < cuts_[k] && subjects_[s].until >= cuts_[k];
    }
    /// Is resident at cut k in any plan.
    bool fixed(StorageIndex s, std::size_t k) const {
        return !subjects_[s].rebuildable && subjects_[s].born < cuts_[k] &&
               subjects_[s].stays >= cuts_[k];
    }

    // Calls visit(storage, version) for what the op, or the end of the step, reads or writes.
    template <class Visit>
    void forEachRead(OpIndex op, Visit visit) const {
        const bool end = op == static_cast<OpIndex>(graph_.ops.size());
        for (const Use& use : end ? finals_ : graph_.ops[op].inputs)
            visit(graph_.storageOf(use.tensor), use.version);
        if (end) return;
        for (const Write& write : graph_.ops[op].writes) visit(write.storage, write.versionBefore);
    }

    void describeSubjects() {
        for (StorageIndex s = 0; s < static_cast<StorageIndex>(subjects_.size()); ++s) {
            const Storage& storage = graph_.storages[s];
            Subject& subject = subjects_[s];
            const ItemIndex i = model_.itemOf[s];
            subject.until = i == kNone ? model_.storageNeededUntil[s] : model_.neededUntil[i];
            if (storage.isConstant()) continue;
            subject.born = model_.stageOf[storage.creator];
            const auto& writes = graph_.ops[storage.creator].writes;
            subject.rebuildable = std::none_of(writes.begin(), writes.end(), [&](const Write& w) {
                return graph_.storages[w.storage].isConstant();
            });
        }
        StageIndex last = kNone;  // of the ops before a later constant
        for (const Event& event : graph_.events) {
            if (event.kind == Event::Kind::Compute && !graph_.ops[event.index].viewOnly())
                last = model_.stageOf[event.index];
            if (event.kind == Event::Kind::Constant) subjects_[event.index].born = last;
        }
        for (StageIndex stage = 0; stage <= model_.end; ++stage)
            if (firstRunIsTied(stage))
                forEachRead(model_.opOf(stage),
                            [&](StorageIndex s, std::int32_t) { subjects_[s].stays = stage; });
    }

    void chooseIgnored() {
        std::vector<StorageIndex> bySize(subjects_.size());
        std::iota(bySize.begin(), bySize.end(), 0);
        const auto bytes = [&](StorageIndex s) { return graph_.storages[s].bytes; };
        std::stable_sort(bySize.begin(), bySize.end(),
                         [&](StorageIndex a, StorageIndex b) { return bytes(a) < bytes(b); });
        double sum = 0;
        for (const StorageIndex s : bySize) {
            if (bytes(s) <= Bytes(0)) continue;
            if (subjects_[s].rebuildable) sum += static_cast<double>(bytes(s).count());
            subjects_[s].counts = !subjects_[s].rebuildable ||
                                  sum > kIgnoredShare * static_cast<double>(budget_.count());
        }
    }

    void addResidents(std::size_t k) {
        for (StorageIndex s = 0; s < static_cast<StorageIndex>(subjects_.size()); ++s)
            if (subjects_[s].counts && exists(s, k) && !fixed(s, k))
                resident_[k][s] = program_.addColumn(0, 0, 1, true);
        forEachRead(model_.opOf(cuts_[k]), [&](StorageIndex s, std::int32_t) {
            if (const auto at = resident_[k].find(s); at != resident_[k].end())
                program_.setLower(at->second, 1);
        });
    }

    // Last op captured before cut k that takes the storage to the version; kNone: it cannot be
    // rebuilt.
    OpIndex rebuilder(StorageIndex s, std::int32_t version, std::size_t k) const {
        if (!subjects_[s].rebuildable) return kNone;
        OpIndex last = graph_.storages[s].creator;
        for (std::int32_t v = 0; v < version; ++v) {
            const OpIndex writer = graph_.storages[s].writers[v];
            if (model_.stageOf[writer] < cuts_[k]) last = writer;
        }
        return last;
    }

    // (1)
    void cover(std::size_t k, StorageIndex s, std::int32_t version) {
        const auto at = resident_[k].find(s);
        if (at == resident_[k].end()) return;
        const OpIndex maker = rebuilder(s, version, k);
        if (!covered_.insert({k, s, maker}).second) return;
        const int run = maker == kNone ? kNone : rerun(k, maker);
        program_.beginRow(1, INFINITY);
        program_.addEntry(at->second, 1);
        if (run != kNone) program_.addEntry(run, 1);
    }

    // column <= U[k,s] + R[k,maker], for (2), (3) and (4).
    void addAtMost(int column, std::size_t k, StorageIndex s, OpIndex maker) {
        const auto at = resident_[k].find(s);
        if (at == resident_[k].end()) return;
        const int run = maker == kNone ? kNone : rerun(k, maker);
        if (run == column) return;
        program_.beginRow(0, INFINITY);
        program_.addEntry(column, -1);
        program_.addEntry(at->second, 1);
        if (run != kNone) program_.addEntry(run, 1);
    }

    // The column of R[k,op], with (2) and (3) for it; depth first over what it reads.
    int rerun(std::size_t k, OpIndex op) {
        if (const auto known = rerun_[k].find(op); known != rerun_[k].end()) return known->second;
        const int made = program_.addColumn(programTime_(model_.time[op]), 0, 1, true);
        rerun_[k][op] = made;
        pending_.emplace_back(k, op);
        if (expanding_) return made;
        expanding_ = true;
        while (!pending_.empty()) {
            const auto [segment, next] = pending_.back();
            pending_.pop_back();
            const int own = rerun_[segment].at(next);
            forEachRead(next, [&, k = segment](StorageIndex s, std::int32_t version) {
                addAtMost(own, k, s, rebuilder(s, version, k));
            });
        }
        expanding_ = false;
        return made;
    }

    // (5)
    bool addMemory(std::size_t k) {
        const OpIndex own = model_.opOf(cuts_[k]);
        Bytes room = budget_ - model_.footprint[own];
        for (StorageIndex s = 0; s < static_cast<StorageIndex>(subjects_.size()); ++s)
            if (fixed(s, k)) room -= graph_.storages[s].bytes;
        const auto scale = std::max(1.0, static_cast<double>(budget_.count()));
        Bytes needed;
        for (const auto& [s, column] : resident_[k])
            if (program_.lower(column) > 0) needed += graph_.storages[s].bytes;
        if (needed > room) return false;
        program_.beginRow(-INFINITY, static_cast<double>(room.count()) / scale);
        for (const auto& [s, column] : resident_[k])
            program_.addEntry(column,
                              static_cast<double>(graph_.storages[s].bytes.count()) / scale);
        return true;
    }

    // (6), with one cut for each pair of readers.
    void addViews() {
        std::map<OpIndex, std::vector<StageIndex>> readers;
        for (StageIndex stage = 0; stage <= model_.end; ++stage) {
            if (!firstRunIsTied(stage)) continue;
            for (const OpIndex view : model_.lazyViews[model_.opOf(stage)])
                readers[view].push_back(stage);
        }
        for (const auto& [view, stages] : readers) {
            const StorageIndex s = graph_.storageOf(graph_.ops[view].inputs.front().tensor);
            const double cost = programTime_(model_.time[view]);
            for (std::size_t r = 1; r < stages.size(); ++r)
                for (std::size_t k = 0; k < cuts_.size(); ++k) {
                    if (cuts_[k] <= stages[r - 1] || cuts_[k] > stages[r]) continue;
                    const auto at = resident_[k].find(s);
                    if (at == resident_[k].end()) break;
                    program_.addCost(at->second, -cost);
                    program_.addOffset(cost);
                    break;
                }
        }
    }

    const StageModel& model_;
    const TrainingGraph& graph_;
    Bytes budget_;
    std::vector<StageIndex> cuts_;
    ProgramTime programTime_;
    std::vector<Use> finals_;
    std::vector<Subject> subjects_;                      // per storage
    std::vector<std::map<OpIndex, int>> rerun_;          // per segment
    std::vector<std::map<StorageIndex, int>> resident_;  // per cut
    std::set<std::tuple<std::size_t, StorageIndex, OpIndex>> covered_;
    std::vector<std::pair<std::size_t, OpIndex>> pending_;
    bool expanding_ = false;
    LinearProgram program_;
};

}  // namespace

std::optional<CutSolution> solveCuts(const StageModel& model, Bytes budget,
                                     const std::vector<StageIndex>& cuts,
                                     const CutOptions& options) {
    if (!haveSolver()) return std::nullopt;
    CutProgram program(model, budget, cuts);
    if (!program.build()) return CutSolution{};
    CutSolution solution = program.solve(options);
    if (solution.status == SolveStatus::Failed) return std::nullopt;
    return solution;
}

}  // namespace hw::planners
