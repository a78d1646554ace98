// SPDX-License-Identifier: MIT
#include "planners/search/budget_continuation.h"

#include <array>
#include <cmath>

namespace hw::planners {
namespace {

struct Continuation {
    double hot;     // temperature at the beginning
    double shrink;  // budget of a step over that of the one before
};
constexpr std::array<Continuation, 5> kContinuations{
    {{1e-4, 0.94}, {3e-3, 0.7}, {1e-3, 0.94}, {1e-4, 0.7}, {3e-3, 0.85}}};

}  // namespace

void continueBudget(const core::RetentionMatrix& start, std::size_t run, core::StageJudge& judge,
                    Annealing& annealing, const WorkBudget& all,
                    const std::function<double(std::int64_t moves, const WorkBudget&)>& ended) {
    const Continuation& with = kContinuations[run % kContinuations.size()];
    const core::Bytes budget = judge.budget();
    judge.load(start);
    const auto wanted = static_cast<double>(budget.count());
    const double shrink = wanted / static_cast<double>(judge.peak().count());
    const int steps =
        shrink >= 1 ? 0 : static_cast<int>(std::ceil(std::log(shrink) / std::log(with.shrink)));
    const auto anneal = [&](const Cooling& cooling, const WorkBudget& work) {
        annealing.run(cooling, [&](std::int64_t moves) { return ended(moves, work); });
    };
    for (int step = 0; step <= steps; ++step) {
        judge.setBudget(
            core::Bytes(static_cast<std::int64_t>(wanted / std::pow(with.shrink, steps - step))));
        annealing.forget();
        anneal({with.hot, with.hot / 30}, all.part(2 * (steps + 1)));
    }
    judge.setBudget(budget);
    anneal({with.hot / 3, 1e-6}, all.part(2));
}

}  // namespace hw::planners
