// SPDX-License-Identifier: MIT
#include "planners/search/annealing.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace hw::planners {

using namespace hw::core;

Annealing::Annealing(StageJudge& judge, std::uint64_t seed)
    : judge_(judge), model_(judge.model()), random_(seed + 1) {
    double sum = 0;
    std::size_t gaps = 0;
    for (ItemIndex i = 0; i < static_cast<ItemIndex>(model_.itemCount()); ++i) {
        if (judge.firstStage(i) > judge.lastStage(i) || model_.uses[i].empty()) continue;
        movable_.push_back(i);
        weight_.push_back(sum += std::sqrt(static_cast<double>(model_.bytes[i].count())));
        gaps += model_.uses[i].size();
    }
    hopeless_.resize(gaps);
}

double Annealing::uniform() {
    return static_cast<double>(random_() >> 11) * 0x1p-53;
}

void Annealing::note() {
    if (judge_.overflow() > Bytes(0) || judge_.time() >= bestTime_) return;
    best_ = judge_.retention();
    bestTime_ = judge_.time();
}

void Annealing::forget() {
    best_.clear();
    bestTime_ = Nanoseconds(INT64_MAX);
}

void Annealing::run(const Cooling& cooling, const std::function<double(std::int64_t)>& done) {
    constexpr std::int64_t kRound = 256;  // moves between looks at the penalty and the clock
    constexpr double kFar = 20;           // temperatures
    if (movable_.empty()) return;
    hopeless_.forget();
    const auto baseline = static_cast<double>(model_.graph->totalTime().count());
    const auto budget = std::max(1.0, static_cast<double>(judge_.budget().count()));
    Energy energy{1 / baseline, penalty_ / budget};
    note();
    double present = judge_.energy(energy), temperature = cooling.hot;
    for (std::int64_t move = 0;; ++move) {
        if (move % kRound == 0) {
            const double share = done(move);
            if (share >= 1) return;
            temperature = cooling.hot * std::pow(cooling.cold / cooling.hot, share);
            penalty_ *= judge_.overflow() > Bytes(0) ? 1.1 : 0.93;
            penalty_ = std::clamp(penalty_, 1e-4, 1e4);
            energy.perByte = penalty_ / budget;
            present = judge_.energy(energy);
        }
        Draw draw = Draw::PassedOver;
        while (draw == Draw::PassedOver) draw = propose();
        if (draw == Draw::Nothing) {
            judge_.rollback();
            continue;
        }
        const double limit = present - temperature * std::log(1 - uniform());
        const double next = judge_.settle(energy, limit);
        hopeless_.note(next > present + kFar * temperature);
        if (next > limit) {
            judge_.rollback();
            continue;
        }
        judge_.commit();
        present = next;
        note();
    }
}

ItemIndex Annealing::randomItem() {
    if (below(2) == 0) return movable_[below(movable_.size())];
    const auto at = std::upper_bound(weight_.begin(), weight_.end(), uniform() * weight_.back());
    return movable_[std::min<std::size_t>(at - weight_.begin(), movable_.size() - 1)];
}

StageIndex Annealing::randomStage(ItemIndex i) {
    const StageIndex first = judge_.firstStage(i), last = judge_.lastStage(i);
    // Every gap between two readers is as likely as any other, whatever its length.
    if (below(2) == 0) {
        const auto uses = model_.uses[i];
        return std::clamp(uses[below(uses.size())], first, last);
    }
    return first + static_cast<StageIndex>(below(static_cast<std::uint64_t>(last - first) + 1));
}

Annealing::Gap Annealing::gapAt(ItemIndex i, StageIndex k) const {
    const StageIndex from = judge_.previousInvolved(i, model_.born[i], k - 1) + 1;
    const StageIndex to = judge_.nextInvolved(i, k, judge_.lastStage(i));
    return {i, std::max(from, judge_.firstStage(i)), std::min(to, judge_.lastStage(i))};
}

Annealing::Draw Annealing::propose() {
    const ItemIndex i = randomItem();
    const StageIndex k = randomStage(i);
    const auto made = [](bool any) { return any ? Draw::Move : Draw::Nothing; };
    hopeless_.noFlip();
    switch (below(10)) {
        case 0:
            return made(shift(i, k));
        case 1:
        case 2:
        case 3:
            return made(exchange(i, k));
        case 4:
            return made(block(i, k));
        default:
            if (hopeless_.passes(gapAt(i, k), !judge_.retained(i, k))) return Draw::PassedOver;
            return made(flip(i, k));
    }
}

void Annealing::Hopeless::resize(std::size_t gaps) {
    entries_.resize(std::bit_ceil(std::clamp<std::size_t>(8 * gaps, 1u << 10, 1u << 20)));
}

void Annealing::Hopeless::forget() {
    std::fill(entries_.begin(), entries_.end(), Entry{});
}

// Two flips may have the same place: then one waits for the other's sake.
bool Annealing::Hopeless::passes(const Gap& gap, bool retain) {
    const std::uint64_t key = static_cast<std::uint64_t>(gap.item) << 33 |
                              static_cast<std::uint64_t>(gap.to) << 1 | (retain ? 1 : 0);
    last_ = (key * 0x9E3779B97F4A7C15u >> 32) & (entries_.size() - 1);
    Entry& entry = entries_[last_];
    if (entry.left == 0) return false;
    --entry.left;
    return true;
}

void Annealing::Hopeless::note(bool far) {
    constexpr std::uint8_t kMost = 16;
    if (last_ == kNoFlip) return;
    Entry& entry = entries_[last_];
    entry.patience = far ? std::min<std::uint8_t>(kMost, entry.patience * 2 + 1) : 0;
    entry.left = entry.patience;
}

bool Annealing::flip(ItemIndex i, StageIndex k) {
    const Gap gap = gapAt(i, k);
    const bool retain = !judge_.retained(i, k);
    if (retain && judge_.nextInvolved(i, k, judge_.lastStage(i)) > judge_.lastStage(i))
        return false;  // it is not read any more
    judge_.set(i, gap.from, gap.to, retain);
    return true;
}

// Begins or ends a lifetime between two readers.
bool Annealing::shift(ItemIndex i, StageIndex k) {
    const Gap gap = gapAt(i, k);
    if (gap.from >= gap.to) return false;
    if (judge_.retained(i, gap.to)) {
        judge_.set(i, gap.from, k, below(2) == 0);
        return true;
    }
    if (judge_.nextInvolved(i, k, judge_.lastStage(i)) > judge_.lastStage(i)) return false;
    judge_.set(i, k, gap.to, true);
    return true;
}

// Drops one item and retains another across the same stage.
bool Annealing::exchange(ItemIndex i, StageIndex k) {
    const bool retain = !judge_.retained(i, k);
    for (int attempt = 0; attempt < 16; ++attempt) {
        const ItemIndex other = movable_[below(movable_.size())];
        if (other == i || k < judge_.firstStage(other) || k > judge_.lastStage(other) ||
            judge_.retained(other, k) != retain)
            continue;
        return flip(i, k) && flip(other, k);
    }
    return false;
}

// Moves an item together with what it is made from, or with what is made from it.
bool Annealing::block(ItemIndex i, StageIndex k) {
    const bool retained = judge_.retained(i, k);
    bool any = flip(i, k);
    const auto follow = [&](ItemIndex other) {
        if (other != i && k >= judge_.firstStage(other) && k <= judge_.lastStage(other) &&
            judge_.retained(other, k) == retained)
            any |= flip(other, k);
    };
    const auto opposite = [&](ItemIndex other) {
        if (other != i && k >= judge_.firstStage(other) && k <= judge_.lastStage(other) &&
            judge_.retained(other, k) != retained)
            any |= flip(other, k);
    };
    switch (below(4)) {
        case 0: {  // what the same op makes comes at no further time
            const OpIndex maker = model_.chain[i].front();
            for (const ItemIndex sibling : model_.outputs[maker]) follow(sibling);
            break;
        }
        case 1:
            for (const OpIndex op : model_.chain[i])
                for (const ItemIndex input : model_.inputs[op]) follow(input);
            break;
        case 2:
            for (const OpIndex op : model_.chain[i])
                for (const ItemIndex input : model_.inputs[op]) opposite(input);
            break;
        default: {
            const auto uses = model_.uses[i];
            const StageIndex reader = uses[below(uses.size())];
            for (const ItemIndex output : model_.outputs[model_.opOf(reader)])
                if (below(2) == 0)
                    follow(output);
                else
                    opposite(output);
        }
    }
    return any;
}

}  // namespace hw::planners
