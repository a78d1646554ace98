// SPDX-License-Identifier: MIT
#include "core/memory/stage_judge.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace hw::core {
namespace {

constexpr std::uint64_t kAll = ~std::uint64_t{0};

// Bits of word `w` (of 64 stages) that belong to the stages from..to.
std::uint64_t wordMask(StageIndex w, StageIndex from, StageIndex to) {
    std::uint64_t mask = kAll;
    if (w == from >> 6) mask &= kAll << (from & 63);
    if (w == to >> 6) mask &= kAll >> (63 - (to & 63));
    return mask;
}

template <class T>
void erase(std::vector<T>& list, T value) {
    const auto at = std::find(list.begin(), list.end(), value);
    *at = list.back();
    list.pop_back();
}

}  // namespace

StageJudge::StageJudge(const StageModel& model, Bytes budget)
    : model_(&model), budget_(budget.count()) {
    const auto items = static_cast<ItemIndex>(model.itemCount());
    const auto stages = static_cast<std::size_t>(model.end) + 1;
    std::size_t words = 0;
    for (ItemIndex i = 0; i < items; ++i) {
        first_.push_back(model.born[i] + 1);
        last_.push_back(model.neededUntil[i]);
        column_.push_back(words);
        const StageIndex top = std::max(last_[i], model.born[i]);
        words += static_cast<std::size_t>((top >> 6) - (model.born[i] >> 6)) + 1;
    }
    retained_.assign(words, 0);
    involved_.assign(words, 0);
    starts_.resize(stages);
    stops_.resize(stages);
    stages_.resize(stages);
    peak_.resize(stages);
    for (std::size_t k = 0; k < stages; ++k) peak_[k] = model.fixedBytes[k].count();
    for (const std::int64_t peak : peak_) overflow_ += std::max<std::int64_t>(0, peak - budget_);
    const std::size_t ops = model.graph->ops.size();
    viewStages_.resize(ops);
    viewRuns_.assign(ops, 0);
    viewIsDirty_.assign(ops, false);
    isDirty_.assign(stages, false);
    itemMark_.assign(items, 0);
    lastRead_.assign(items, 0);
    opMark_.assign(ops + 1, 0);
    opBits_.assign(ops / 64 + 1, 0);
    time_ = model.graph->totalTime().count();
    // The first run of every lazy view is in the total; what is counted here are its runs.
    for (OpIndex op = 0; op < static_cast<OpIndex>(ops); ++op)
        if (model.lazy(op)) time_ -= model.time[op].count();
    for (ItemIndex i = 0; i < items; ++i)
        if (!model.uses[i].empty()) set(i, first_[i], model.uses[i].back(), true);
    for (StageIndex k = 0; k <= model.end; ++k) markDirty(k);
    settle();
    commit();
}

void StageJudge::setBudget(Bytes budget) {
    budget_ = budget.count();
    overflow_ = 0;
    for (const std::int64_t peak : peak_) overflow_ += std::max<std::int64_t>(0, peak - budget_);
}

Bytes StageJudge::peak() const {
    return Bytes(*std::max_element(peak_.begin(), peak_.end()));
}

StageIndex StageJudge::highestStage() const {
    return static_cast<StageIndex>(std::max_element(peak_.begin(), peak_.end()) - peak_.begin());
}

void StageJudge::shiftPeak(StageIndex k, std::int64_t bytes) {
    const std::int64_t before = peak_[k];
    peak_[k] += bytes;
    overflow_ +=
        std::max<std::int64_t>(0, peak_[k] - budget_) - std::max<std::int64_t>(0, before - budget_);
}

void StageJudge::markDirty(StageIndex k) {
    if (isDirty_[k]) return;
    isDirty_[k] = true;
    dirty_.push_back(k);
}

StageIndex StageJudge::nextBit(const Bits& bits, ItemIndex i, StageIndex from,
                               StageIndex to) const {
    if (from > to) return to + 1;
    for (StageIndex w = from >> 6; w <= to >> 6; ++w)
        if (const std::uint64_t found = bits[word(i, w << 6)] & wordMask(w, from, to))
            return (w << 6) + std::countr_zero(found);
    return to + 1;
}

StageIndex StageJudge::nextInvolved(ItemIndex i, StageIndex from, StageIndex to) const {
    return nextBit(involved_, i, std::max(from, model_->born[i]), std::min(to, last_[i]));
}

StageIndex StageJudge::nextRetained(ItemIndex i, StageIndex from, StageIndex to) const {
    return nextBit(retained_, i, std::max(from, first_[i]), std::min(to, last_[i]));
}

StageIndex StageJudge::previousInvolved(ItemIndex i, StageIndex from, StageIndex to) const {
    const StageIndex low = std::max(from, model_->born[i]), high = std::min(to, last_[i]);
    if (low > high) return from - 1;
    for (StageIndex w = high >> 6; w >= low >> 6; --w)
        if (const std::uint64_t found = involved_[word(i, w << 6)] & wordMask(w, low, high))
            return (w << 6) + 63 - std::countl_zero(found);
    return from - 1;
}

// The item is retained into every stage from..to.
bool StageJudge::unbroken(ItemIndex i, StageIndex from, StageIndex to) const {
    if (from > to) return true;
    for (StageIndex w = from >> 6; w <= to >> 6; ++w) {
        const std::uint64_t mask = wordMask(w, from, to);
        if ((retained_[word(i, w << 6)] & mask) != mask) return false;
    }
    return true;
}

// Enters or removes the places after the stages from..to where retention of the item changes; a
// stage next to such a place rebuilds or frees the item.
void StageJudge::moveTransitions(ItemIndex i, StageIndex from, StageIndex to, bool add) {
    // A word's bits against those of the stages after them: bit 63's is the next word's bit 0.
    for (StageIndex w = from >> 6; w <= to >> 6; ++w) {
        const std::uint64_t next = retained(i, (w + 1) << 6) ? std::uint64_t{1} << 63 : 0;
        const std::uint64_t bits = retained_[word(i, w << 6)];
        const std::uint64_t changes = (bits ^ (bits >> 1 | next)) & wordMask(w, from, to);
        for (std::uint64_t rest = changes; rest != 0; rest &= rest - 1) {
            const int at = std::countr_zero(rest);
            const StageIndex k = (w << 6) + at;
            auto& list = (bits >> at & 1) != 0 ? stops_[k] : starts_[k];
            if (add)
                list.push_back(i);
            else
                erase(list, i);
            markDirty(k);
        }
    }
}

void StageJudge::set(ItemIndex i, StageIndex from, StageIndex to, bool retain) {
    from = std::max(from, first_[i]);
    to = std::min(to, last_[i]);
    if (from > to) return;
    if (retain ? unbroken(i, from, to) : nextBit(retained_, i, from, to) > to) return;
    moveTransitions(i, from - 1, to, false);
    bitJournal_.push_back({i, from, to, savedWords_.size()});
    const std::int64_t bytes = model_->bytes[i].count() * (retain ? 1 : -1);
    for (StageIndex w = from >> 6; w <= to >> 6; ++w) {
        std::uint64_t& word64 = retained_[word(i, w << 6)];
        savedWords_.push_back(word64);
        const std::uint64_t mask = wordMask(w, from, to);
        std::uint64_t changed = (retain ? ~word64 : word64) & mask;
        word64 ^= changed;
        for (std::uint64_t rest = changed; rest != 0; rest &= rest - 1)
            shiftPeak((w << 6) + std::countr_zero(rest), bytes);
        for (std::uint64_t rest = changed & involved_[word(i, w << 6)]; rest != 0; rest &= rest - 1)
            markDirty((w << 6) + std::countr_zero(rest));
    }
    moveTransitions(i, from - 1, to, true);
    markViews(i);
}

// The runs of a view that several stages read depend on its item's residencies.
void StageJudge::markViews(ItemIndex i) {
    for (const OpIndex view : model_->views[i])
        if (viewStages_[view].size() > 1 && !viewIsDirty_[view])
            viewIsDirty_[view] = true, dirtyViews_.push_back(view);
}

/// What is retained into stage k and out of it, as the matrix has it.
struct StageJudge::MatrixResidents {
    const StageJudge& judge;
    StageIndex k;
    bool into(ItemIndex i) const { return judge.retained(i, k); }
    bool outOf(ItemIndex i) const { return judge.retained(i, k + 1); }
    template <class Visit>
    void starts(Visit visit) const {
        for (const ItemIndex i : judge.starts_[k]) visit(i);
    }
    template <class Visit>
    void stops(Visit visit) const {
        for (const ItemIndex i : judge.stops_[k]) visit(i);
    }
};

/// The same, as two sets of items have it.
struct StageJudge::GivenResidents {
    std::span<const std::uint64_t> now, next;
    static bool in(std::span<const std::uint64_t> set, ItemIndex i) {
        return (set[static_cast<std::size_t>(i >> 6)] >> (i & 63) & 1) != 0;
    }
    bool into(ItemIndex i) const { return in(now, i); }
    bool outOf(ItemIndex i) const { return in(next, i); }
    template <class Visit>
    static void onlyIn(std::span<const std::uint64_t> set, std::span<const std::uint64_t> other,
                       Visit visit) {
        for (std::size_t w = 0; w < set.size(); ++w)
            for (std::uint64_t rest = set[w] & ~other[w]; rest != 0; rest &= rest - 1)
                visit(static_cast<ItemIndex>(w * 64) + std::countr_zero(rest));
    }
    template <class Visit>
    void starts(Visit visit) const {
        onlyIn(next, now, visit);
    }
    template <class Visit>
    void stops(Visit visit) const {
        onlyIn(now, next, visit);
    }
};

// Enters into the stage what reading item `i` takes: nothing when it is retained, else the ops that
// rebuild it, and whatever they read.
template <class Residents>
void StageJudge::require(ItemIndex i, StageIndex k, Stage& stage, const Residents& residents) {
    const auto enter = [&](ItemIndex item) {
        if (itemMark_[item] == stamp_) return;
        itemMark_[item] = stamp_;
        lastRead_[item] = -1;
        stage.involved.push_back(item);
        if (!residents.into(item)) open_.push_back(item);
    };
    enter(i);
    while (!open_.empty()) {
        const ItemIndex item = open_.back();
        open_.pop_back();
        for (const OpIndex op : model_->chain[item]) {
            if (model_->stageOf[op] >= k) break;
            if (opMark_[op] == stamp_) continue;
            opMark_[op] = stamp_;
            stage.ops.push_back(op);
            for (const ItemIndex input : model_->inputs[op]) enter(input);
        }
    }
}

// Many ops lie close together: a bit each, read in order, takes less than comparing them.
void StageJudge::sort(std::vector<OpIndex>& ops) {
    constexpr std::size_t kMany = 12;
    if (ops.size() < kMany) return std::sort(ops.begin(), ops.end());
    OpIndex first = ops.front(), last = first;
    for (const OpIndex op : ops) {
        opBits_[static_cast<std::size_t>(op >> 6)] |= std::uint64_t{1} << (op & 63);
        first = std::min(first, op);
        last = std::max(last, op);
    }
    auto sorted = ops.begin();
    for (OpIndex word = first >> 6; word <= last >> 6; ++word)
        for (std::uint64_t bits = std::exchange(opBits_[static_cast<std::size_t>(word)], 0);
             bits != 0; bits &= bits - 1)
            *sorted++ = word * 64 + std::countr_zero(bits);
}

// Plays stage `k` with the given items retained.
template <class Residents>
void StageJudge::replay(StageIndex k, Stage& stage, const Residents& residents) {
    stage.ops.clear();
    stage.involved.clear();
    stage.views.clear();
    stage.cost = 0;
    ++stamp_;
    const OpIndex own = model_->opOf(k);
    for (const ItemIndex i : model_->inputs[own]) require(i, k, stage, residents);
    residents.starts([&](ItemIndex i) {
        if (model_->born[i] != k) require(i, k, stage, residents);
    });
    sort(stage.ops);

    std::int64_t live = 0;  // above fixed bytes and retained items
    residents.stops([&](ItemIndex i) {
        if (itemMark_[i] != stamp_) live -= model_->bytes[i].count();
    });
    std::int32_t position = 0;
    const auto read = [&](OpIndex op) {
        for (const ItemIndex i : model_->inputs[op]) lastRead_[i] = position;
        ++position;
    };
    for (const OpIndex op : stage.ops) read(op);
    read(own);

    position = 0;
    stage.height = live;
    const auto addViews = [&](OpIndex op) {
        for (const OpIndex view : model_->lazyViews[op])
            if (opMark_[view] != stamp_) opMark_[view] = stamp_, stage.views.push_back(view);
    };
    for (const OpIndex op : stage.ops) {
        addViews(op);
        stage.cost += model_->time[op].count();
        stage.height = std::max(stage.height, live + model_->footprint[op].count());
        for (const ItemIndex i : model_->outputs[op])
            if (itemMark_[i] == stamp_ && !residents.into(i)) live += model_->bytes[i].count();
        for (const ItemIndex i : model_->inputs[op])
            if (lastRead_[i] == position && !residents.outOf(i)) live -= model_->bytes[i].count();
        ++position;
    }
    addViews(own);
    for (const OpIndex view : model_->unreadViews[own])
        if (opMark_[view] != stamp_) opMark_[view] = stamp_, stage.views.push_back(view);
    std::sort(stage.views.begin(), stage.views.end());
    stage.viewTime = 0;
    for (const OpIndex view : stage.views) stage.viewTime += model_->time[view].count();
    const std::int64_t op = std::max(model_->footprint[own].count(),
                                     (model_->newBytes[own] + model_->constantsAfter[k]).count());
    stage.height = std::max(stage.height, live + op);
}

StageJudge::Outcome StageJudge::between(StageIndex k, std::span<const std::uint64_t> into,
                                        std::span<const std::uint64_t> outOf) {
    const GivenResidents residents{into, outOf};
    replay(k, given_, residents);
    Outcome outcome{Nanoseconds(given_.cost), model_->fixedBytes[k] + Bytes(given_.height)};
    for (const OpIndex view : given_.views)
        if (!residents.into(viewedItem(view))) outcome.cost += model_->time[view];
    return outcome;
}

// Puts a replayed stage in place of the present one, which is left in `stage`.
void StageJudge::install(StageIndex k, Stage& stage) {
    Stage& present = stages_[k];
    for (const ItemIndex i : present.involved) flip(involved_, i, k);
    for (const ItemIndex i : stage.involved) flip(involved_, i, k);
    const auto change = [&](OpIndex view, bool add) {
        auto& list = viewStages_[view];
        const auto at = std::lower_bound(list.begin(), list.end(), k);
        add ? void(list.insert(at, k)) : void(list.erase(at));
        if (!viewIsDirty_[view]) viewIsDirty_[view] = true, dirtyViews_.push_back(view);
    };
    auto old = present.views.begin(), now = stage.views.begin();
    while (old != present.views.end() || now != stage.views.end()) {
        if (now == stage.views.end() || (old != present.views.end() && *old < *now))
            change(*old++, false);
        else if (old == present.views.end() || *now < *old)
            change(*now++, true);
        else
            ++old, ++now;
    }
    time_ += stage.cost - present.cost;
    shiftPeak(k, stage.height - present.height);
    std::swap(present, stage);
}

// A lazy view runs once in every unbroken residency of its item in which something reads it.
void StageJudge::countViews() {
    for (const OpIndex view : dirtyViews_) {
        viewIsDirty_[view] = false;
        const ItemIndex i = viewedItem(view);
        std::int32_t runs = 0;
        StageIndex previous = kNone;
        for (const StageIndex k : viewStages_[view]) {
            if (previous == kNone || !unbroken(i, previous + 1, k)) ++runs;
            previous = k;
        }
        time_ += (runs - viewRuns_[view]) * model_->time[view].count();
        viewRuns_[view] = runs;
    }
    dirtyViews_.clear();
}

void StageJudge::replayDirty(StageIndex k) {
    isDirty_[k] = false;
    Stage stage;
    if (!spare_.empty()) stage = std::move(spare_.back()), spare_.pop_back();
    replay(k, stage, MatrixResidents{*this, k});
    install(k, stage);
    stageJournal_.emplace_back(k, std::move(stage));
}

void StageJudge::settle() {
    for (const StageIndex k : dirty_) replayDirty(k);
    dirty_.clear();
    countViews();
}

// What a stage may save by being replayed is at most what it takes now. Late stages come first:
// they recompute, and where an item goes that one of them reads, they take longer.
double StageJudge::settle(const Energy& energy, double limit) {
    std::int64_t time = 0, overflow = 0, views = 0;  // what may fall away at most
    const auto excess = [&](StageIndex k) { return std::max<std::int64_t>(0, peak_[k] - budget_); };
    for (const StageIndex k : dirty_) {
        time += stages_[k].cost;
        views += stages_[k].viewTime;
        overflow += excess(k);
    }
    for (const OpIndex view : dirtyViews_) views += viewRuns_[view] * model_->time[view].count();
    std::sort(dirty_.begin(), dirty_.end());
    while (!dirty_.empty()) {
        const double least = energy.of(time_ - time - views, overflow_ - overflow);
        if (least > limit) return least;
        const StageIndex k = dirty_.back();
        dirty_.pop_back();
        time -= stages_[k].cost;
        overflow -= excess(k);
        replayDirty(k);
    }
    countViews();
    return energy.of(time_, overflow_);
}

void StageJudge::commit() {
    for (auto& [k, stage] : stageJournal_) spare_.push_back(std::move(stage));
    stageJournal_.clear();
    bitJournal_.clear();
    savedWords_.clear();
}

void StageJudge::rollback() {
    for (auto change = bitJournal_.rbegin(); change != bitJournal_.rend(); ++change) {
        const auto [i, from, to, words] = *change;
        moveTransitions(i, from - 1, to, false);
        const std::int64_t bytes = model_->bytes[i].count();
        for (StageIndex w = from >> 6; w <= to >> 6; ++w) {
            std::uint64_t& present = retained_[word(i, w << 6)];
            const std::uint64_t old =
                savedWords_[words + static_cast<std::size_t>(w - (from >> 6))];
            for (std::uint64_t rest = present ^ old; rest != 0; rest &= rest - 1) {
                const int at = std::countr_zero(rest);
                shiftPeak((w << 6) + at, (old >> at & 1) != 0 ? bytes : -bytes);
            }
            present = old;
        }
        moveTransitions(i, from - 1, to, true);
        markViews(i);
    }
    for (const StageIndex k : dirty_) isDirty_[k] = false;
    dirty_.clear();
    for (auto entry = stageJournal_.rbegin(); entry != stageJournal_.rend(); ++entry)
        install(entry->first, entry->second);
    countViews();
    commit();
}

void StageJudge::load(const RetentionMatrix& retention) {
    if (&retention == &retained_) return;
    for (ItemIndex i = 0; i < static_cast<ItemIndex>(model_->itemCount()); ++i)
        for (StageIndex k = first_[i]; k <= last_[i];) {
            const bool value = bit(retention, i, k);
            StageIndex to = k;
            while (to < last_[i] && bit(retention, i, to + 1) == value) ++to;
            set(i, k, to, value);
            k = to + 1;
        }
    settle();
    commit();
}

void StageJudge::trim() {
    for (bool changed = true; changed;) {  // what is no longer rebuilt needs its inputs no longer
        changed = false;
        for (ItemIndex i = 0; i < static_cast<ItemIndex>(model_->itemCount()); ++i)
            for (StageIndex k = nextRetained(i, first_[i], last_[i]); k <= last_[i];) {
                StageIndex end = k;  // of the run that begins at k
                while (retained(i, end + 1)) ++end;
                const StageIndex used = previousInvolved(i, k, end);
                if (used < end) set(i, used + 1, end, false), changed = true;
                k = nextRetained(i, end + 1, last_[i]);
            }
        settle();
        commit();
    }
}

}  // namespace hw::core
