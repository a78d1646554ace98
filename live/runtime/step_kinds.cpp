// SPDX-License-Identifier: MIT
#include "step_kinds.h"

#include <algorithm>

namespace hw::live::runtime {
namespace {

constexpr std::int64_t kTimes = 3;        // steps whose times are taken together
constexpr std::int64_t kOften = 6;        // steps, most of them planned, that are often
constexpr std::size_t kMostKinds = 24;    // kept; further ones take the place of the oldest
constexpr std::int64_t kMostTraces = 48;  // and one more for each step that a plan was of use for
constexpr std::int64_t kLongestPause = 15;

}  // namespace

bool StepKinds::wanted() {
    return steps_++ >= until_ && traced_ < kMostTraces + planned_;
}

void StepKinds::add(std::unique_ptr<StepTrace> step) {
    ++traced_;
    const auto known = std::find_if(kinds_.begin(), kinds_.end(),
                                    [&](Kind& kind) { return kind.trace->merge(*step); });
    if (known != kinds_.end()) {
        known->last = steps_;
        ++known->steps;
        ask(*known);
        // Nothing new: the next one is the further away, the longer that has been so.
        if (known->often) until_ = steps_ + (pause_ = std::min(kLongestPause, 2 * pause_ + 1));
        return;
    }
    pause_ = 0;
    if (kinds_.size() == kMostKinds)
        kinds_.erase(
            std::min_element(kinds_.begin(), kinds_.end(),
                             [](const Kind& a, const Kind& b) { return a.last < b.last; }));
    Kind kind;
    kind.number = numbers_++;
    kind.trace = std::move(step);
    kind.steps = 1;
    kind.last = steps_;
    kinds_.push_back(std::move(kind));
    for (Kind& each : kinds_) ask(each);
}

void StepKinds::planned(std::int64_t kind) {
    ++planned_;
    for (Kind& each : kinds_) {
        if (each.number != kind) continue;
        each.last = steps_;
        ++each.steps;
        ask(each);
    }
}

/// With what has been traced so far.
void StepKinds::ask(Kind& kind) {
    if (numbers_ > 1 && !std::exchange(kind.soon, true))
        requests_.push_back({kind.number, false, kind.trace->json()});
    const bool often =
        kind.steps >= kOften || static_cast<std::int64_t>(kind.trace->steps()) >= kTimes;
    if (often && !std::exchange(kind.often, true))
        requests_.push_back({kind.number, true, kind.trace->json()});
}

std::int64_t StepKinds::layerOf(std::int64_t op, const std::string& name) const {
    for (const Kind& kind : kinds_)
        if (const std::int64_t layer = kind.trace->layerOf(op, name); layer >= 0) return layer;
    return -1;
}

std::optional<PlanRequest> StepKinds::take() {
    if (requests_.empty()) return std::nullopt;
    PlanRequest next = std::move(requests_.front());
    requests_.pop_front();
    return next;
}

}  // namespace hw::live::runtime
