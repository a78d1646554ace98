// SPDX-License-Identifier: MIT
// The matrix of a StageJudge as a schedule, and the other way round.
#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "core/graph/captured_order.h"
#include "core/memory/stage_judge.h"

namespace hw::core {

void StageJudge::load(const Schedule& schedule) {
    const TrainingGraph& graph = *model_->graph;
    std::vector<StageIndex> since(model_->itemCount(), kNone);  // stage it is resident from
    const auto end = [&](ItemIndex i, StageIndex stage) {
        if (since[i] != kNone) set(i, since[i], stage, true);
        since[i] = kNone;
    };
    for (ItemIndex i = 0; i < static_cast<ItemIndex>(model_->itemCount()); ++i)
        set(i, first_[i], last_[i], false);
    StageIndex stage = 0;   // whose ops run now
    bool finished = false;  // its own op is done: frees that follow belong to it
    for (const Action& action : schedule) {
        if (action.runsOp() && finished && !model_->lazy(action.target)) ++stage, finished = false;
        if (action.kind == ActionKind::Free) {
            if (const ItemIndex i = model_->itemOf[action.target]; i != kNone) end(i, stage);
        } else if (action.kind == ActionKind::Compute) {
            for (const ItemIndex i : model_->outputs[action.target]) since[i] = stage + 1;
            if (!model_->lazy(action.target)) finished = true;
        } else if (action.kind == ActionKind::Recompute) {
            for (const std::int32_t output : action.outputs) {
                const OpOutput& made = graph.ops[action.target].outputs[output];
                const ItemIndex i = model_->itemOf[graph.storageOf(made.tensor)];
                if (made.makesStorage && i != kNone && since[i] == kNone) since[i] = stage + 1;
            }
        }
    }
    for (ItemIndex i = 0; i < static_cast<ItemIndex>(model_->itemCount()); ++i) end(i, last_[i]);
    settle();
    commit();
}

// Writes the schedule: plays all stages in order and keeps track of what is defined.
class StageJudge::Emitter {
public:
    explicit Emitter(const StageJudge& judge)
        : judge_(judge),
          model_(*judge.model_),
          graph_(*judge.model_->graph),
          computed_(graph_.ops.size(), false),
          defined_(graph_.ops.size(), false),
          lastRead_(model_.itemCount(), 0) {
        dying_.resize(static_cast<std::size_t>(model_.end) + 1);
        for (const ConstantStart& start : capturedOrder(graph_).constants)
            enterDeath(start.storage, start.after == kNone ? 0 : model_.stageOf[start.after] + 1);
        for (StorageIndex s = 0; s < static_cast<StorageIndex>(graph_.storages.size()); ++s)
            if (model_.staysFrom(s) != kNone) enterDeath(s, model_.staysFrom(s));
    }

    Schedule write() {
        for (StageIndex k = 0; k <= model_.end; ++k) stage(k);
        return std::move(schedule_);
    }

private:
    void enterDeath(StorageIndex s, StageIndex born) {
        const StageIndex until = std::max(model_.storageNeededUntil[s], born);
        if (until < model_.end) dying_[until].push_back(s);
    }

    void stage(StageIndex k) {
        const Stage& stage = judge_.stages_[k];
        for (const ItemIndex i : judge_.stops_[k])
            if (!judge_.involved(i, k)) free(i);
        const OpIndex own = model_.opOf(k);
        std::int32_t position = 0;
        for (const OpIndex op : stage.ops) noteReads(op, position++);
        noteReads(own, position);
        position = 0;
        for (const OpIndex op : stage.ops) {
            views(model_.lazyViews[op]);
            recompute(op, k);
            freeRead(op, k, position++);
        }
        views(model_.lazyViews[own]);
        if (k == model_.end) return;
        schedule_.push_back(Action::compute(own));
        computed_[own] = true;
        views(model_.unreadViews[own]);
        freeRead(own, k, position);
        for (const ItemIndex i : model_.outputs[own])
            if (!judge_.retained(i, k + 1)) free(i);
        for (const StorageIndex s : dying_[k]) schedule_.push_back(Action::free(s));
    }

    void noteReads(OpIndex op, std::int32_t position) {
        for (const ItemIndex i : model_.inputs[op]) lastRead_[i] = position;
    }

    void freeRead(OpIndex op, StageIndex k, std::int32_t position) {
        for (const ItemIndex i : model_.inputs[op])
            if (lastRead_[i] == position && !judge_.retained(i, k + 1) && !staysAfter(i, k))
                free(i);
    }

    bool staysAfter(ItemIndex i, StageIndex k) const {
        return model_.staysAfter[i] && k == model_.neededUntil[i];
    }

    void views(std::span<const std::int32_t> list) {
        for (const OpIndex view : list) {
            if (defined_[view]) continue;
            defined_[view] = true;
            if (!computed_[view]) {
                computed_[view] = true;
                schedule_.push_back(Action::compute(view));
                continue;
            }
            ShortList<std::int32_t> all(graph_.ops[view].outputs.size());
            for (std::size_t j = 0; j < all.size(); ++j) all[j] = static_cast<std::int32_t>(j);
            schedule_.push_back(Action::recompute(view, std::move(all)));
        }
    }

    void recompute(OpIndex op, StageIndex k) {
        ShortList<std::int32_t> wanted;
        for (std::size_t j = 0; j < graph_.ops[op].outputs.size(); ++j) {
            const OpOutput& output = graph_.ops[op].outputs[j];
            const ItemIndex i = model_.itemOf[graph_.storageOf(output.tensor)];
            if (!output.makesStorage ||
                (i != kNone && judge_.involved(i, k) && !judge_.retained(i, k)))
                wanted.push_back(static_cast<std::int32_t>(j));
        }
        schedule_.push_back(Action::recompute(op, std::move(wanted)));
    }

    void free(ItemIndex i) {
        schedule_.push_back(Action::free(model_.storages[i]));
        for (const OpIndex view : model_.views[i]) defined_[view] = false;
    }

    const StageJudge& judge_;
    const StageModel& model_;
    const TrainingGraph& graph_;
    Schedule schedule_;
    std::vector<bool> computed_, defined_;
    std::vector<std::int32_t> lastRead_;
    std::vector<std::vector<StorageIndex>> dying_;  // per stage: what stays, freed after it
};

Schedule StageJudge::schedule() const {
    return Emitter(*this).write();
}

}  // namespace hw::core
