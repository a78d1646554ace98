// SPDX-License-Identifier: MIT
// The fast incremental form of the judge, for planners that search.
//
// A plan is a retention matrix: item i is retained into stage k, or not (`S` of Checkmate, Jain et
// al., MLSys 2020, section 3; here per storage, and only where an item can exist). It fixes a
// schedule: a stage recomputes, in captured order, what its op lacks and what is retained out of
// it without being there, each storage is freed after its last reader in the stage unless it is
// retained, and lazy views are re-run once in every unbroken residency of their item. schedule()
// writes it out; the plain judge gives the same peak and time for it.
//
// Changing a run of bits costs what it touches: the stages whose recomputations read the item are
// replayed, all others of the run only shift by its bytes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/memory/stage_model.h"
#include "core/plan/plan.h"

namespace hw::core {

/// The bits of a StageJudge, one item after the other.
using RetentionMatrix = std::vector<std::uint64_t>;

/// What a search weighs plans by.
struct Energy {
    double perNanosecond = 0, perByte = 0;  // of the plan's time, and of its overflow
    double of(std::int64_t time, std::int64_t overflow) const {
        return static_cast<double>(time) * perNanosecond + static_cast<double>(overflow) * perByte;
    }
};

class StageJudge {
public:
    /// Starts with every item retained from its birth to the last op that reads it for the first
    /// time. `model` must outlive the judge.
    StageJudge(const StageModel& model, Bytes budget);

    const StageModel& model() const { return *model_; }

    /// Retains item `i` into the stages from..to (both inclusive), or drops it there. Stages before
    /// its second and after its last possible one are left out. Takes effect with settle().
    void set(ItemIndex i, StageIndex from, StageIndex to, bool retained);
    /// Brings time, peaks and overflow up to date after set().
    void settle();
    /// The same where the energy, which is returned, is at most `limit` then. Where it is not,
    /// rollback() must follow: some stages may not have been replayed, and what is returned is
    /// above `limit` and at most the energy.
    double settle(const Energy& energy, double limit);
    /// Forgets how to undo; the changes so far stay.
    void commit();
    /// Undoes everything since the last commit().
    void rollback();

    bool retained(ItemIndex i, StageIndex k) const {
        return k >= first_[i] && k <= last_[i] && bit(retained_, i, k);
    }
    /// The item is read or rebuilt while stage `k` runs.
    bool involved(ItemIndex i, StageIndex k) const {
        return k >= model_->born[i] && k <= last_[i] && bit(involved_, i, k);
    }
    /// First stage in from..to where the item is involved, or retained; `to` + 1 when there is
    /// none.
    StageIndex nextInvolved(ItemIndex i, StageIndex from, StageIndex to) const;
    StageIndex nextRetained(ItemIndex i, StageIndex from, StageIndex to) const;
    /// Last stage in from..to where the item is involved; `from` - 1 when there is none.
    StageIndex previousInvolved(ItemIndex i, StageIndex from, StageIndex to) const;
    /// First and last stage into which the item can be retained; empty when first > last.
    StageIndex firstStage(ItemIndex i) const { return first_[i]; }
    StageIndex lastStage(ItemIndex i) const { return last_[i]; }

    Nanoseconds time() const { return Nanoseconds(time_); }
    Bytes peak() const;
    /// Highest bytes while stage `k` runs.
    Bytes stagePeak(StageIndex k) const { return Bytes(peak_[k]); }
    StageIndex highestStage() const;
    /// Sum over the stages of what exceeds the budget; 0 when the plan fits.
    Bytes overflow() const { return Bytes(overflow_); }
    Bytes budget() const { return Bytes(budget_); }
    double energy(const Energy& energy) const { return energy.of(time_, overflow_); }
    void setBudget(Bytes budget);
    /// Time of what stage `k` recomputes, lazy views left out.
    Nanoseconds stageCost(StageIndex k) const { return Nanoseconds(stages_[k].cost); }
    /// Ops that stage `k` recomputes, in captured order.
    const std::vector<OpIndex>& recomputed(StageIndex k) const { return stages_[k].ops; }

    struct Outcome {
        Nanoseconds cost;  // of what is recomputed, and of lazy views of what is not retained
        Bytes height;      // highest bytes above those retained into the stage
    };
    /// What stage `k` would be if just `into` were retained into it and `outOf` out of it, whatever
    /// the matrix says. Bit i % 64 of word i / 64 stands for item i; an item must lie in both sets
    /// only where it can be retained.
    Outcome between(StageIndex k, std::span<const std::uint64_t> into,
                    std::span<const std::uint64_t> outOf);

    /// Drops every item where it is retained for no use. Never makes a plan worse.
    void trim();

    /// To be kept, and loaded again into a judge of the same model.
    const RetentionMatrix& retention() const { return retained_; }
    void load(const RetentionMatrix& retention);
    /// The matrix of a valid schedule of the same graph: what it holds whenever a stage begins. For
    /// schedules that another planner wrote, peak and time may differ a little.
    void load(const Schedule& schedule);

    /// Calls visit(item, stage) for every stage into which `retention` retains an item.
    template <class Visit>
    void forEachRetained(const RetentionMatrix& retention, Visit visit) const {
        for (ItemIndex i = 0; i < static_cast<ItemIndex>(model_->itemCount()); ++i)
            for (StageIndex k = nextBit(retention, i, first_[i], last_[i]); k <= last_[i];
                 k = nextBit(retention, i, k + 1, last_[i]))
                visit(i, k);
    }

    /// The schedule that the matrix stands for.
    Schedule schedule() const;

private:
    using Bits = RetentionMatrix;
    struct Stage {
        std::vector<OpIndex> ops;         // recomputed, ascending
        std::vector<ItemIndex> involved;  // read or rebuilt
        std::vector<OpIndex> views;       // lazy views read, ascending
        std::int64_t cost = 0;
        std::int64_t viewTime = 0;  // of all views, each once
        std::int64_t height = 0;    // peak above fixed bytes and the retained items'
    };
    struct BitChange {
        ItemIndex item;
        StageIndex from, to;
        std::size_t words;  // begin of the old words in savedWords_
    };
    class Emitter;
    struct MatrixResidents;
    struct GivenResidents;

    std::size_t word(ItemIndex i, StageIndex k) const {
        return column_[i] + static_cast<std::size_t>((k >> 6) - (model_->born[i] >> 6));
    }
    bool bit(const Bits& bits, ItemIndex i, StageIndex k) const {
        return bits[word(i, k)] >> (k & 63) & 1;
    }
    void flip(Bits& bits, ItemIndex i, StageIndex k) {
        bits[word(i, k)] ^= std::uint64_t{1} << (k & 63);
    }
    StageIndex nextBit(const Bits& bits, ItemIndex i, StageIndex from, StageIndex to) const;
    bool unbroken(ItemIndex i, StageIndex from, StageIndex to) const;

    void moveTransitions(ItemIndex i, StageIndex from, StageIndex to, bool add);
    void shiftPeak(StageIndex k, std::int64_t bytes);
    void markDirty(StageIndex k);
    void replayDirty(StageIndex k);
    template <class Residents>
    void replay(StageIndex k, Stage& stage, const Residents& residents);
    template <class Residents>
    void require(ItemIndex i, StageIndex k, Stage& stage, const Residents& residents);
    void sort(std::vector<OpIndex>& ops);
    ItemIndex viewedItem(OpIndex view) const {
        return model_->itemOf[model_->graph->storageOf(model_->graph->ops[view].inputs[0].tensor)];
    }
    void install(StageIndex k, Stage& stage);
    void markViews(ItemIndex i);
    void countViews();

    const StageModel* model_;
    std::int64_t budget_;
    std::vector<StageIndex> first_, last_;  // per item: stages that it can be retained into
    std::vector<std::size_t> column_;       // per item: its first word
    Bits retained_, involved_;
    std::vector<std::vector<ItemIndex>> starts_, stops_;  // retained changes after stage k
    std::vector<Stage> stages_;
    std::vector<std::int64_t> peak_;
    std::int64_t time_ = 0, overflow_ = 0;

    std::vector<std::vector<StageIndex>> viewStages_;  // per op: stages that read the lazy view
    std::vector<std::int32_t> viewRuns_;               // per op
    std::vector<OpIndex> dirtyViews_;
    std::vector<bool> viewIsDirty_;

    std::vector<StageIndex> dirty_;
    std::vector<bool> isDirty_;
    std::vector<BitChange> bitJournal_;
    Bits savedWords_;
    std::vector<std::pair<StageIndex, Stage>> stageJournal_;
    std::vector<Stage> spare_;

    // Scratch of replay(): marks are valid where they equal the stamp.
    std::vector<std::uint32_t> itemMark_, opMark_;
    Bits opBits_;  // one an op, all 0 between calls of sort()
    std::uint32_t stamp_ = 0;
    std::vector<std::int32_t> lastRead_;
    std::vector<ItemIndex> open_;
    Stage given_;  // of between()
};

}  // namespace hw::core
