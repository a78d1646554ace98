// SPDX-License-Identifier: MIT
// What stays known of a program's storages: between two steps only what is away and how it is
// made; within a step, where few of many storages are left, what is alive and how that is made.
#include <algorithm>
#include <utility>

#include "budget_runtime.h"

namespace hw::live::runtime {
namespace {

constexpr std::size_t kLongest = 64;  // ops, for one storage alone, to make it from what is there
constexpr std::int64_t kTraced = 100'000;  // ops of a step without an end, at least

planners::HeuristicOptions options() {
    planners::HeuristicOptions options;
    options.some = true;
    return options;
}

}  // namespace

planners::Evictor BudgetRuntime::newEvictor(std::size_t storages) const {
    return planners::Evictor(storages, heuristic_, options());
}

/// What is there is what the next step begins with. Of what the program wants and is not there, it
/// stays known how it is made.
void BudgetRuntime::settle() {
    takeReleased();
    atAnyPrice_ = false;
    const auto told = trace_ ? trace_->told() : std::vector<c10::StorageImpl*>();
    const Keeping keeping = keepingAway(false);
    if (std::find(keeping.kept.begin(), keeping.kept.end(), true) == keeping.kept.end())
        reset();
    else
        renumber(keeping, false);
    for (c10::StorageImpl* const impl : told) known(impl);  // by the numbers from here on
}

void BudgetRuntime::reset() {
    const std::int64_t clock = evictor_.state().clock;
    tape_.compact(std::vector<std::int64_t>(tape_.storages(), -1), 0,
                  std::vector<bool>(tape_.storages(), false));
    slots_.reset(room_);  // the next step is likely to need as many
    streams_.reset();
    evictor_ = newEvictor(room_);
    evictor_.state().clock = clock;
    doubtful_.clear();
    ++cuts_;
    checkAt_ = few_;
    if (log_) logStretch({});
}

/// A step may have no end: an evaluation, or a program whose updates nothing shows. Each time that
/// twice as much is known as was kept the last time, it is seen whether that is too much.
void BudgetRuntime::compact() {
    if (tape_.storages() + tape_.size() < checkAt_ || underWay_ > 0) return;
    if (followers_.follows() && !followers_.early()) return;  // a plan knows how long its step is
    if (trace_ && static_cast<std::int64_t>(trace_->ops()) > std::max(kTraced, 4 * longestOps_))
        leaveTrace();
    if (muchIsGone()) {
        if (!followers_.follows()) releaseUnneeded(keepingAway(true));
        takeReleased();
        Keeping keeping = keepingAway(true);
        keepAlive(keeping);
        renumber(keeping, true);
    }
    checkAt_ = std::max(few_, 2 * (tape_.storages() + tape_.size()));
}

bool BudgetRuntime::muchIsGone() const {
    std::size_t alive = 0;
    for (Storage s = 0; s < tape_.storages(); ++s) alive += slots_[s].alive() ? 1 : 0;
    return alive * times_ < tape_.storages() + tape_.size();
}

/// What is away, and what it is made from: from what is there, or, `whole`, from what nothing
/// makes.
BudgetRuntime::Keeping BudgetRuntime::keepingAway(bool whole) const {
    const std::vector<bool> none(tape_.storages(), false);
    Keeping keeping{none, none, none};
    std::vector<Storage> ahead;
    const auto keep = [&](Storage s) {
        if (keeping.kept[s]) return;
        keeping.kept[s] = keeping.needed[s] = true;
        keeping.makes[s] = tape_.canMake(s) && (whole || !present(s));
        if (keeping.makes[s]) ahead.push_back(s);
    };
    for (const std::size_t away : slots_.away()) keep(static_cast<Storage>(away));
    while (!ahead.empty()) {
        const Storage s = ahead.back();
        ahead.pop_back();
        for (const std::uint32_t op : tape_.chain(s))
            for (const Input& input : tape_[op].inputs)
                if (input.version != kUnread) keep(input.storage);
    }
    return keeping;
}

/// Releases sources of dropped storages that have come back or are made from others now. A storage
/// whose end the agent does not report stays held as long as the program has it.
void BudgetRuntime::releaseUnneeded(const Keeping& keeping) {
    for (Storage s = 0; s < tape_.storages(); ++s)
        if (slots_[s].isHeld() && !keeping.needed[s] && (watched_[s] || !wanted(s)))
            slots_.release(s);
}

/// What is alive stays known, with how it is made; what that takes a long chain of things that are
/// gone for stays as it is.
void BudgetRuntime::keepAlive(Keeping& keeping) {
    std::vector<bool> cut(tape_.storages(), false);
    for (Storage s = 0; s < tape_.storages(); ++s) {
        if (keeping.kept[s] || !slots_[s].alive()) continue;
        if (tape_.canMake(s) && !keepMakeable(s, keeping, cut)) keepAsItIs(s);
        keeping.kept[s] = true;
    }
}

bool BudgetRuntime::keepMakeable(Storage storage, Keeping& keeping, std::vector<bool>& cut) const {
    std::vector<Storage> found{storage};
    std::size_t ops = 0;
    bool makeable = true;
    const auto keep = [&](Storage s) {
        if (keeping.kept[s] || slots_[s].alive()) return;
        makeable = makeable && !cut[s] && tape_.canMake(s);
        keeping.kept[s] = true;
        found.push_back(s);
    };
    for (std::size_t i = 0; i < found.size() && makeable; ++i)
        for (const std::uint32_t op : tape_.chain(found[i])) {
            makeable = makeable && ++ops <= kLongest;
            for (const Input& input : tape_[op].inputs)
                if (makeable && input.version != kUnread) keep(input.storage);
        }
    for (const Storage s : found) {
        keeping.kept[s] = keeping.makes[s] = makeable;
        cut[s] = !makeable;
    }
    return makeable;
}

/// Keeps so much, under other numbers. Between two steps what is there is from before.
void BudgetRuntime::renumber(const Keeping& keeping, bool midStep) {
    std::vector<std::int64_t> to(tape_.storages(), -1);
    std::vector<Kept> kept;
    for (Storage s = 0; s < tape_.storages(); ++s) {
        if (!keeping.kept[s]) continue;
        to[s] = static_cast<std::int64_t>(kept.size());
        Kept each{evictor_[s], keeping.needed[s]};
        each.state.pinned = each.state.locks > 0;
        if (midStep) {
            each.made = made_[s], each.gradient = gradient_[s];
            each.unfilled = unfilled_[s], each.watched = watched_[s];
        } else {
            each.state.material = each.state.pinned = !keeping.makes[s];
            each.state.deferred = false;
        }
        if (keeping.needed[s] && !keeping.makes[s]) hold(s);
        kept.push_back(std::move(each));
    }
    doubtful_.clear();  // by other numbers, and few
    moved_ += static_cast<std::int64_t>(tape_.storages() + tape_.size());
    tape_.compact(to, kept.size(), keeping.makes);
    slots_.rename(to, kept.size());
    if (midStep) followers_.rename(to);
    takeOver(kept);
}

void BudgetRuntime::takeOver(const std::vector<Kept>& kept) {
    const std::int64_t clock = evictor_.state().clock;
    room_ = kept.size();
    for (auto* flags : {&unfilled_, &made_, &watched_, &needed_, &gradient_})
        flags->assign(room_, false);
    found_.resize(room_);
    below_.resize(room_);
    ++cuts_;
    evictor_ = newEvictor(room_);
    evictor_.state().clock = clock;
    for (std::size_t i = 0; i < tape_.size(); ++i)
        for (const Input& input : tape_[i].inputs) {
            if (input.version == kUnread) continue;
            for (const Output& output : tape_[i].outputs)
                if (output.storage != kNobody) evictor_.link(input.storage, output.storage);
            for (const std::uint32_t written : tape_[i].writes)
                evictor_.link(input.storage, written);
        }
    if (log_) logStretch(kept);
    for (Storage s = 0; s < kept.size(); ++s) {
        const Kept& each = kept[s];
        const auto index = static_cast<core::StorageIndex>(s);
        evictor_.takeOver(index, each.state);
        needed_[s] = each.needed;
        made_[s] = each.made;
        gradient_[s] = each.gradient;
        unfilled_[s] = each.unfilled;
        if (each.watched && each.state.material) watch(s);
    }
}

}  // namespace hw::live::runtime
