// SPDX-License-Identifier: MIT
#include "planners/program/cut_relaxation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "planners/program/cut_context.h"
#include "planners/schedule/work_budget.h"

namespace hw::planners {

using namespace hw::core;

namespace {

constexpr double kLastStart = 0.3;  // of the time: with less of it left no part is begun

// Builds the program of the cuts first..last row by row. What was captured before stage
// `expandFrom` counts as re-run for its own time, with no demand on what it reads.
class CutProgram {
public:
    CutProgram(const CutContext& context, std::size_t first, std::size_t last,
               StageIndex expandFrom, ProgramTime programTime, const std::vector<bool>& kept = {})
        : context_(context),
          model_(context.model()),
          graph_(context.graph()),
          first_(first),
          last_(last),
          expandFrom_(expandFrom),
          programTime_(programTime),
          kept_(kept),
          rerun_(last - first + 1),
          resident_(last - first + 1) {}

    /// False when a cut alone exceeds the budget.
    bool build() {
        for (std::size_t k = first_; k <= last_; ++k) {
            context_.forEachRead(model_.opOf(context_.cut(k)), [&](StorageIndex s, std::int32_t) {
                if (const int own = resident(k, s); own != kNone) program_.setLower(own, 1);
            });
            for (StageIndex stage = context_.cut(k); stage < context_.segmentEnd(k); ++stage)
                if (context_.firstRunIsTied(stage))
                    context_.forEachRead(
                        model_.opOf(stage),
                        [&](StorageIndex s, std::int32_t version) { cover(k, s, version); });
        }
        for (std::size_t k = last_; k > first_; --k) addArrivals(k);
        for (std::size_t k = first_; k <= last_; ++k)
            if (!addMemory(k)) return false;
        addViews();
        return true;
    }

    const LinearProgram& program() const { return program_; }

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
    std::map<StorageIndex, int>& residentAt(std::size_t k) { return resident_[k - first_]; }
    const std::map<StorageIndex, int>& residentAt(std::size_t k) const {
        return resident_[k - first_];
    }
    std::map<OpIndex, int>& rerunAt(std::size_t k) { return rerun_[k - first_]; }

    std::vector<std::vector<bool>> residents(const std::vector<double>& values) const {
        std::vector<std::vector<bool>> flags(last_ - first_ + 1,
                                             std::vector<bool>(model_.itemCount(), false));
        for (std::size_t k = first_; k <= last_; ++k)
            for (ItemIndex i = 0; i < static_cast<ItemIndex>(model_.itemCount()); ++i) {
                const StorageIndex s = model_.storages[i];
                const auto column = residentAt(k).find(s);
                flags[k - first_][i] =
                    column != residentAt(k).end()
                        ? values[column->second] > 0.5
                        : context_.exists(s, k) &&
                              (!context_.subject(s).counts || context_.fixed(s, k));
            }
        return flags;
    }

    // The column of U[k,s]; none where it is settled or of no matter.
    int resident(std::size_t k, StorageIndex s) {
        if (!context_.subject(s).counts || !context_.exists(s, k) || context_.fixed(s, k))
            return kNone;
        const auto [at, isNew] = residentAt(k).try_emplace(s, kNone);
        if (isNew) at->second = program_.addColumn(0, isKept(s) ? 1 : 0, 1, true);
        return at->second;
    }

    bool isKept(StorageIndex s) const {
        const ItemIndex i = model_.itemOf[s];
        return i != kNone && !kept_.empty() && kept_[i];
    }

    // (1)
    void cover(std::size_t k, StorageIndex s, std::int32_t version) {
        const int kept = resident(k, s);
        if (kept == kNone) return;
        const OpIndex maker = context_.rebuilder(s, version, k);
        if (!covered_.insert({k, s, maker}).second) return;
        const int run = maker == kNone ? kNone : rerun(k, maker);
        program_.beginRow(1, INFINITY);
        program_.addEntry(kept, 1);
        if (run != kNone) program_.addEntry(run, 1);
    }

    // (4)
    void addArrivals(std::size_t k) {
        for (const auto& [s, column] : residentAt(k))
            if (context_.subject(s).born < context_.cut(k - 1))
                addAtMost(column, k - 1, s,
                          context_.subject(s).rebuildable ? graph_.storages[s].creator : kNone);
    }

    // column <= U[k,s] + R[k,maker], for (2), (3) and (4).
    void addAtMost(int column, std::size_t k, StorageIndex s, OpIndex maker) {
        const int kept = resident(k, s);
        if (kept == kNone) return;
        const int run = maker == kNone ? kNone : rerun(k, maker);
        if (run == column) return;
        program_.beginRow(0, INFINITY);
        program_.addEntry(column, -1);
        program_.addEntry(kept, 1);
        if (run != kNone) program_.addEntry(run, 1);
    }

    // The column of R[k,op], with (2) and (3) for it; depth first over what it reads.
    int rerun(std::size_t k, OpIndex op) {
        if (const auto known = rerunAt(k).find(op); known != rerunAt(k).end()) return known->second;
        const int made = program_.addColumn(programTime_(model_.time[op]), 0, 1, true);
        rerunAt(k)[op] = made;
        if (model_.stageOf[op] >= expandFrom_) pending_.emplace_back(k, op);
        if (expanding_) return made;
        expanding_ = true;
        while (!pending_.empty()) {
            const auto [segment, next] = pending_.back();
            pending_.pop_back();
            const int own = rerunAt(segment).at(next);
            context_.forEachRead(next, [&, k = segment](StorageIndex s, std::int32_t version) {
                addAtMost(own, k, s, context_.rebuilder(s, version, k));
            });
        }
        expanding_ = false;
        return made;
    }

    // (5)
    bool addMemory(std::size_t k) {
        const OpIndex own = model_.opOf(context_.cut(k));
        Bytes room = context_.budget() - model_.footprint[own];
        for (const StorageIndex s : context_.thereAt(k))
            if (context_.fixed(s, k)) room -= graph_.storages[s].bytes;
        const auto scale = std::max(1.0, static_cast<double>(context_.budget().count()));
        Bytes needed;
        for (const auto& [s, column] : residentAt(k))
            if (program_.lower(column) > 0) needed += graph_.storages[s].bytes;
        if (needed > room) return false;
        program_.beginRow(-INFINITY, static_cast<double>(room.count()) / scale);
        for (const auto& [s, column] : residentAt(k))
            program_.addEntry(column,
                              static_cast<double>(graph_.storages[s].bytes.count()) / scale);
        return true;
    }

    // (6), with one cut for each pair of readers.
    void addViews() {
        for (std::size_t k = first_; k <= last_; ++k)
            for (const CutView& across : context_.viewsAcross(k)) {
                const auto at = residentAt(k).find(across.storage);
                if (at == residentAt(k).end()) continue;
                const double cost = programTime_(model_.time[across.view]);
                program_.addCost(at->second, -cost);
                program_.addOffset(cost);
            }
    }

    const CutContext& context_;
    const StageModel& model_;
    const TrainingGraph& graph_;
    std::size_t first_, last_;
    StageIndex expandFrom_;
    ProgramTime programTime_;
    std::vector<bool> kept_;                             // per item, or empty
    std::vector<std::map<OpIndex, int>> rerun_;          // per segment
    std::vector<std::map<StorageIndex, int>> resident_;  // per cut
    std::set<std::tuple<std::size_t, StorageIndex, OpIndex>> covered_;
    std::vector<std::pair<std::size_t, OpIndex>> pending_;
    bool expanding_ = false;
    LinearProgram program_;
};

// Time of what is computed for the first time in the segment of cut k.
Nanoseconds segmentTime(const CutContext& context, std::size_t k) {
    Nanoseconds time;
    for (StageIndex stage = context.cut(k); stage < context.segmentEnd(k); ++stage)
        time += context.model().time[context.model().opOf(stage)];
    return time;
}

}  // namespace

std::optional<CutSolution> solveCuts(const StageModel& model, Bytes budget,
                                     const std::vector<StageIndex>& cuts,
                                     const CutOptions& options) {
    if (!haveSolver()) return std::nullopt;
    const CutContext context(model, budget, cuts);
    CutProgram program(context, 0, cuts.size() - 1, 0, ProgramTime(model.graph->totalTime()),
                       options.kept);
    if (!program.build()) return CutSolution{};
    CutSolution solution = program.solve(options);
    if (solution.status == SolveStatus::Failed) return std::nullopt;
    return solution;
}

PartsBound boundByParts(const StageModel& model, Bytes budget, const std::vector<StageIndex>& cuts,
                        const CutOptions& options) {
    PartsBound found{model.graph->totalTime(), false};
    if (!haveSolver()) return found;
    const WorkBudget time{.seconds = options.limits.seconds};
    const CutContext context(model, budget, cuts);
    struct Solved {
        LinearProgram program;
        Nanoseconds scale, more;
    };
    std::vector<Solved> solved;
    for (std::size_t k = 0; k < cuts.size() && !options.cancelled(); ++k) {
        const Nanoseconds scale = segmentTime(context, k);
        CutProgram part(context, k, k, k == 0 ? 0 : context.cut(k - 1), ProgramTime(scale));
        if (!part.build()) return {found.bound, true};
        const auto same = std::find_if(solved.begin(), solved.end(), [&](const Solved& other) {
            return other.scale == scale && other.program == part.program();
        });
        if (same != solved.end()) {
            found.bound += same->more;
            continue;
        }
        // A solve may take longer than it should: what comes first in it cannot be interrupted.
        if (time.secondsLeft() < kLastStart * options.limits.seconds) return found;
        CutOptions own = options;
        if (std::isfinite(options.limits.seconds))
            own.limits.seconds =
                time.secondsLeft() / std::sqrt(static_cast<double>(cuts.size() - k));
        const CutSolution solution = part.solve(own);
        if (solution.status == SolveStatus::Infeasible) return {found.bound, true};
        if (solution.status == SolveStatus::Failed) continue;
        const Nanoseconds more = solution.bound - model.graph->totalTime();
        solved.push_back({part.program(), scale, more});
        found.bound += more;
    }
    return found;
}

}  // namespace hw::planners
