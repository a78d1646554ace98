// SPDX-License-Identifier: MIT
// Optima found by trying everything, for graphs of a few ops: what planners and bounds are held
// against.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <optional>
#include <queue>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/memory/evaluate.h"
#include "core/memory/stage_judge.h"
#include "tests/unit/graph_builder.h"

namespace hw::test {

/// A random graph of 4 to 10 ops (views, in-place writes, several outputs, workspaces) of which
/// only some tensors are alive at the end, so that constants too may go early.
inline core::TrainingGraph smallGraph(unsigned seed) {
    core::TrainingGraph graph = randomGraph(seed, 4 + static_cast<int>(seed % 7));
    std::mt19937 random(seed + 1);
    std::erase_if(graph.finalTensors, [&](core::TensorIndex) { return random() % 3 != 0; });
    EXPECT_EQ(graph.finish(), "");
    return graph;
}

/// The least time of any table of a StageJudge within a budget, for all budgets at once: all tables
/// are visited, two neighbours of a Gray code differ in one bit.
class BestTables {
public:
    /// Number of bits of the model's tables.
    static int bits(const core::StageModel& model) {
        int count = 0;
        for (std::size_t i = 0; i < model.itemCount(); ++i)
            count += std::max(0, model.neededUntil[i] - model.born[i]);
        return count;
    }

    explicit BestTables(const core::StageModel& model) {
        std::vector<std::pair<core::ItemIndex, core::StageIndex>> places;
        for (core::ItemIndex i = 0; i < static_cast<core::ItemIndex>(model.itemCount()); ++i)
            for (core::StageIndex k = model.born[i] + 1; k <= model.neededUntil[i]; ++k)
                places.emplace_back(i, k);
        core::StageJudge judge(model, core::Bytes(0));
        note(judge);
        for (std::uint64_t n = 1; n < std::uint64_t{1} << places.size(); ++n) {
            const auto [i, k] = places[static_cast<std::size_t>(std::countr_zero(n))];
            judge.set(i, k, k, !judge.retained(i, k));
            judge.settle();
            judge.commit();
            note(judge);
        }
    }

    /// None when no table keeps the budget.
    std::optional<core::Nanoseconds> time(core::Bytes budget) const {
        std::optional<core::Nanoseconds> best;
        for (const auto& [peak, time] : front_)
            if (peak <= budget && (!best || time < *best)) best = time;
        return best;
    }
    core::Bytes leastPeak() const { return front_.begin()->first; }

private:
    void note(const core::StageJudge& judge) {
        const auto [at, fresh] = front_.emplace(judge.peak(), judge.time());
        if (!fresh && judge.time() < at->second) at->second = judge.time();
    }

    std::map<core::Bytes, core::Nanoseconds> front_;
};

/// The least time of any schedule that the judge accepts within a budget: Dijkstra's algorithm over
/// all states that actions can lead to, in whatever order. It knows nothing of stages, items or
/// which storages are worth keeping; frees of constants, repeated rebuilds within a stage and
/// rebuilds of old versions are all among them.
class BestSchedule {
public:
    /// Gives up (exhausted() is true) above `mostStates` states. At most 64 storages, tensors, ops.
    BestSchedule(const core::TrainingGraph& graph, core::Bytes budget, std::size_t mostStates)
        : graph_(graph), budget_(budget) {
        for (const core::Event& event : graph.events) {
            if (event.kind == core::Event::Kind::Constant)
                arrivals_.emplace_back(fixedOrder_.size(), event.index);
            else if (event.kind == core::Event::Kind::Compute && !graph.ops[event.index].viewOnly)
                fixedOrder_.push_back(event.index);
        }
        search(mostStates);
    }

    bool exhausted() const { return exhausted_; }
    /// None when no schedule keeps the budget, or when exhausted().
    std::optional<core::Nanoseconds> time() const { return time_; }
    /// A schedule that takes it; empty when there is none.
    const core::Schedule& schedule() const { return schedule_; }

private:
    struct State {
        std::uint64_t resident = 0, defined = 0, computed = 0, versions = 0;  // 2 bits a storage
        std::uint32_t fixedDone = 0;
        bool operator==(const State&) const = default;
    };
    struct Hash {
        std::size_t operator()(const State& s) const {
            std::uint64_t h = s.fixedDone;
            for (const std::uint64_t part : {s.resident, s.defined, s.computed, s.versions})
                h = (h ^ part) * 0x9e3779b97f4a7c15ULL, h ^= h >> 29;
            return h;
        }
    };
    struct Reached {
        std::int64_t cost;
        const State* from;
        core::Action action;
        bool settled = false;
    };
    using Table = std::unordered_map<State, Reached, Hash>;

    static bool has(std::uint64_t set, std::int32_t i) { return set >> i & 1; }
    static std::uint64_t one(std::int32_t i) { return std::uint64_t{1} << i; }
    std::int32_t version(const State& s, core::StorageIndex i) const {
        return static_cast<std::int32_t>(s.versions >> (2 * i) & 3);
    }
    void setVersion(State& s, core::StorageIndex i, std::int32_t version) const {
        s.versions &= ~(std::uint64_t{3} << (2 * i));
        s.versions |= static_cast<std::uint64_t>(version) << (2 * i);
    }
    core::Bytes bytes(const State& s) const {
        core::Bytes sum;
        for (std::uint64_t rest = s.resident; rest != 0; rest &= rest - 1)
            sum += graph_.storages[std::countr_zero(rest)].bytes;
        return sum;
    }
    void place(State& s, core::StorageIndex storage) const {
        s.resident |= one(storage);
        setVersion(s, storage, 0);
        for (const core::TensorIndex tensor : graph_.storages[storage].tensors)
            if (graph_.tensors[tensor].creator == core::kNone) s.defined |= one(tensor);
    }
    State without(State s, core::StorageIndex storage) const {
        s.resident &= ~one(storage);
        setVersion(s, storage, 0);
        for (const core::TensorIndex tensor : graph_.storages[storage].tensors)
            s.defined &= ~one(tensor);
        return s;
    }
    // Constants come into being; false when they exceed the budget.
    bool arrive(State& s) const {
        for (const auto& [after, storage] : arrivals_)
            if (after == s.fixedDone) place(s, storage);
        return bytes(s) <= budget_;
    }

    std::optional<State> run(State s, core::OpIndex index) const {
        const core::Op& op = graph_.ops[index];
        const bool first = !has(s.computed, index);
        if (first && !op.viewOnly && fixedOrder_[s.fixedDone] != index) return std::nullopt;
        for (const core::Use& use : op.inputs) {
            const core::StorageIndex storage = graph_.storageOf(use.tensor);
            if (!has(s.resident, storage) || !has(s.defined, use.tensor) ||
                version(s, storage) != use.version)
                return std::nullopt;
        }
        for (const core::Write& write : op.writes)
            if (!has(s.resident, write.storage) ||
                version(s, write.storage) != write.versionBefore ||
                (!first && graph_.storages[write.storage].isConstant()))
                return std::nullopt;
        core::Bytes during = bytes(s) + op.workspace;
        for (const core::OpOutput& output : op.outputs)
            if (output.makesStorage)
                during += graph_.storages[graph_.storageOf(output.tensor)].bytes;
        if (during > budget_) return std::nullopt;
        for (const core::Write& write : op.writes)
            setVersion(s, write.storage, write.versionBefore + 1);
        for (const core::OpOutput& output : op.outputs) {
            const core::StorageIndex storage = graph_.storageOf(output.tensor);
            if (output.makesStorage && !has(s.resident, storage))
                place(s, storage);
            else if (output.makesStorage)
                continue;
            s.defined |= one(output.tensor);
        }
        if (!first) return s;
        s.computed |= one(index);
        if (op.viewOnly) return s;
        ++s.fixedDone;
        if (!arrive(s)) return std::nullopt;
        return s;
    }

    bool finished(const State& s) const {
        if (std::popcount(s.computed) != static_cast<int>(graph_.ops.size())) return false;
        for (const core::TensorIndex tensor : graph_.finalTensors) {
            const core::StorageIndex storage = graph_.storageOf(tensor);
            if (!has(s.defined, tensor) ||
                version(s, storage) !=
                    static_cast<std::int32_t>(graph_.storages[storage].writers.size()))
                return false;
        }
        return true;
    }

    void reach(const State& state, const State* from, std::int64_t cost, core::Action action) {
        auto [at, fresh] = table_.try_emplace(state, Reached{cost, from, action, false});
        if (!fresh) {
            if (at->second.cost <= cost) return;
            at->second = {cost, from, std::move(action), false};
        }
        queue_.emplace(-cost, &at->first);
    }

    void search(std::size_t mostStates) {
        State start;
        if (!arrive(start)) return;
        reach(start, nullptr, 0, {});
        while (!queue_.empty()) {
            const State* state = queue_.top().second;
            queue_.pop();
            Reached& reached = table_.at(*state);
            if (reached.settled) continue;
            reached.settled = true;
            if (finished(*state)) return conclude(state);
            exhausted_ = table_.size() > mostStates;
            if (exhausted_) return;
            expand(state, reached.cost);
        }
    }
    void expand(const State* state, std::int64_t cost) {
        for (core::OpIndex op = 0; op < static_cast<core::OpIndex>(graph_.ops.size()); ++op) {
            const auto next = run(*state, op);
            if (!next || *next == *state) continue;
            if (!has(state->computed, op)) {
                reach(*next, state, cost, core::Action::compute(op));
                continue;
            }
            core::ShortList<std::int32_t> all;
            for (std::size_t j = 0; j < graph_.ops[op].outputs.size(); ++j)
                all.push_back(static_cast<std::int32_t>(j));
            reach(*next, state, cost + graph_.ops[op].time.count(),
                  core::Action::recompute(op, std::move(all)));
        }
        for (std::uint64_t rest = state->resident; rest != 0; rest &= rest - 1) {
            const auto storage = static_cast<core::StorageIndex>(std::countr_zero(rest));
            reach(without(*state, storage), state, cost, core::Action::free(storage));
        }
    }
    void conclude(const State* state) {
        time_ = graph_.totalTime() + core::Nanoseconds(table_.at(*state).cost);
        for (; table_.at(*state).from != nullptr; state = table_.at(*state).from)
            schedule_.insert(schedule_.begin(), table_.at(*state).action);
    }

    const core::TrainingGraph& graph_;
    core::Bytes budget_;
    std::vector<core::OpIndex> fixedOrder_;
    std::vector<std::pair<std::size_t, core::StorageIndex>> arrivals_;
    Table table_;
    std::priority_queue<std::pair<std::int64_t, const State*>> queue_;
    bool exhausted_ = false;
    std::optional<core::Nanoseconds> time_;
    core::Schedule schedule_;
};

}  // namespace hw::test
