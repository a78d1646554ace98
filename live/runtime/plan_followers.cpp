// SPDX-License-Identifier: MIT
#include "plan_followers.h"

#include <algorithm>

namespace hw::live::runtime {

void PlanFollowers::add(std::int64_t kind, Boundary ending, Program program) {
    following_.clear();
    const auto same = [&](const std::unique_ptr<Kind>& each) { return each->kind == kind; };
    const auto older = [](const std::unique_ptr<Kind>& a, const std::unique_ptr<Kind>& b) {
        return a->wholeAt < b->wholeAt;
    };
    followers_.erase(std::remove_if(followers_.begin(), followers_.end(), same), followers_.end());
    if (followers_.size() == kMost)
        followers_.erase(std::min_element(followers_.begin(), followers_.end(), older));
    followers_.push_back(std::make_unique<Kind>(kind, ending, std::move(program)));
    followers_.back()->wholeAt = steps_;
}

void PlanFollowers::clear() {
    following_.clear();
    followers_.clear();
}

void PlanFollowers::begin() {
    ++steps_;
    left_.reset();
    following_.clear();
    for (const auto& each : followers_) {
        each->op = nullptr;
        each->follower.begin();
        following_.push_back(each.get());
    }
    std::stable_sort(following_.begin(), following_.end(),
                     [](const Kind* a, const Kind* b) { return a->wholeAt > b->wholeAt; });
}

void PlanFollowers::forward() {
    for (Kind* const each : following_) each->follower.forward();
}

void PlanFollowers::rename(const std::vector<std::int64_t>& to) {
    for (Kind* const each : following_) each->follower.rename(to);
}

bool PlanFollowers::certain() const {
    return following_.size() == 1 && !acting().early() && acting().position() > deepest_;
}

PlanFollowers::Ended PlanFollowers::ended() {
    for (Kind* const each : following_)
        if (each->follower.whole()) {
            each->wholeAt = steps_;
            return {each->kind, each->ending};
        }
    return {};
}

/// The acting one may leave: the next one takes over from here, whatever was done before.
void PlanFollowers::dropLeft(bool elsewhere) {
    const auto left = [&](const Kind* each) {
        if (each->follower.follows()) return false;
        if (elsewhere && !each->follower.early())
            deepest_ = std::max(deepest_, each->follower.position());
        left_ = Divergence{
            static_cast<std::int64_t>(each->follower.position()), each->follower.expected(), {}};
        return true;
    };
    following_.erase(std::remove_if(following_.begin(), following_.end(), left), following_.end());
}

const ProgramOp* PlanFollowers::begin(const c10::FunctionSchema& schema,
                                      const NumberedTensors& tensors) {
    bool all = true;
    for (Kind* const each : following_) {
        each->op = each->follower.begin(schema, tensors);
        if (each->op == nullptr) each->follower.miss();
        all = all && each->op != nullptr;
    }
    if (!all) dropLeft(true);
    return follows() ? following_.front()->op : nullptr;
}

const ProgramOp* PlanFollowers::end(const NumberedTensors& results) {
    bool all = true;
    for (Kind* const each : following_)
        if (each->op != nullptr) all = each->follower.end(results) && all;
    if (!all) dropLeft(true);
    return follows() ? std::exchange(following_.front()->op, nullptr) : nullptr;
}

void PlanFollowers::failed() {
    for (Kind* const each : following_)
        if (each->op != nullptr) each->follower.leave();
    dropLeft(false);
}

void PlanFollowers::leave() {
    for (Kind* const each : following_) each->follower.leave();
    dropLeft(false);
}

void PlanFollowers::leaveActing() {
    following_.front()->follower.leave();
    dropLeft(false);
}

}  // namespace hw::live::runtime
