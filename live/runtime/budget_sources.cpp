// SPDX-License-Identifier: MIT
// What an evicted storage would be made from: it is looked up when the storage is about to go, and
// held from then on. What has been looked up once is not walked through again: either it is held,
// or it stays known what it would take at least.
#include <algorithm>

#include "budget_runtime.h"

namespace hw::live::runtime {

/// What it would be made from stays until then. Gone: something of it is not there and nothing
/// makes it. Dear: that may take more than it gives, where the program would let go of it; or what
/// it would be made from is a gradient that autograd adds to in place as long as nothing else
/// refers to it, and else to a copy.
BudgetRuntime::Sources BudgetRuntime::holdSources(Storage storage) {
    findSources(storage);
    if (gone_.empty() && !dear_) {
        heldBytes_ += sourceBytes_;
        for (const Storage s : sources_) hold(s);
        return Sources::Held;
    }
    for (const Passed& each : passed_) needed_[each.storage] = false;
    for (const Storage s : sources_) needed_[s] = false;
    if (gone_.empty()) {
        noteBelow();
        return Sources::Dear;
    }
    const std::vector<Storage> gone(gone_);
    for (const Storage s : gone) released(s);
    // It may be made from what has just become a source, as it is there.
    return loseWith(gone) && tape_.canMake(storage) ? holdSources(storage) : Sources::Gone;
}

/// They, and what is on the way to them, are needed from now on.
void BudgetRuntime::findSources(Storage storage) {
    passed_.clear();
    ahead_.clear();
    sources_.clear();
    gone_.clear();
    sourceBytes_ = 0;
    dear_ = false;
    needed_[storage] = true;
    passed_.push_back({storage, 0});
    ahead_.push_back(0);
    while (!ahead_.empty() && !dear_) {
        const std::size_t from = ahead_.back();
        ahead_.pop_back();
        ++visited_;
        for (const std::uint32_t op : tape_.chain(passed_[from].storage))
            for (const Input& input : tape_[op].inputs)
                if (input.version != kUnread && !needed_[input.storage] && !dear_)
                    findInput(from, input.storage);
    }
    const bool shared = std::any_of(passed_.begin(), passed_.end(),
                                    [](const Passed& each) { return each.shared != kNobody; });
    const bool tooMuch = shared || sourceBytes_ > evictor_[storage].size;
    dear_ = dear_ || (tooMuch && !atAnyPrice_);
    if (dear_ && gone_.empty() && shared && log_) log_->line("shared", storage);
}

void BudgetRuntime::findInput(std::size_t from, Storage input) {
    if (!tape_.canMake(input)) {
        needed_[input] = true;
        sources_.push_back(input);
        if (!slots_[input].alive()) gone_.push_back(input);
        const std::int64_t bytes = made_[input] ? evictor_[input].size : 0;
        passed_[from].bytes += bytes;
        sourceBytes_ += bytes;
        if (isShared(input)) passed_[from].shared = input;
    } else if (isDear(input, evictor_[passed_.front().storage].size)) {
        passed_[from].atLeast = knownBelow(input);
        const Storage shared = below_[input].shared;
        if (shared != kNobody && isShared(shared)) passed_[from].shared = shared;
        dear_ = true;
    } else {
        needed_[input] = true;
        ahead_.push_back(passed_.size());
        passed_.push_back({input, from});
    }
}

/// Autograd counts who refers to it.
bool BudgetRuntime::isShared(Storage source) const {
    return gradient_[source] && wanted(source) && !slots_[source].held;
}

/// What would have to be held for it takes so much, at least.
std::int64_t BudgetRuntime::knownBelow(Storage storage) const {
    const Below& below = below_[storage];
    return below.cuts == cuts_ ? below.bytes - (heldBytes_ - below.heldBefore) : 0;
}

bool BudgetRuntime::isDear(Storage storage, std::int64_t size) const {
    if (atAnyPrice_ || below_[storage].cuts != cuts_) return false;
    const Storage shared = below_[storage].shared;
    return knownBelow(storage) > size ||
           (shared != kNobody && !tape_.canMake(shared) && isShared(shared));
}

/// Each was found after what it was found from.
void BudgetRuntime::noteBelow() {
    for (std::size_t i = passed_.size(); i-- > 0;) {
        const Passed& each = passed_[i];
        const std::int64_t bytes = std::max({each.bytes, each.atLeast, knownBelow(each.storage)});
        below_[each.storage] = {bytes, each.shared, heldBytes_, cuts_};
        Passed& from = passed_[each.from];
        if (i == 0) break;
        from.bytes += each.bytes;
        from.atLeast = std::max(from.atLeast, bytes);
        if (from.shared == kNobody) from.shared = each.shared;
    }
}

}  // namespace hw::live::runtime
