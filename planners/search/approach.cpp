// SPDX-License-Identifier: MIT
#include "planners/search/approach.h"

#include <array>
#include <cmath>

namespace hw::planners {
namespace {

struct Way {
    double hot;     // temperature at the beginning
    double shrink;  // budget of a step over that of the one before
};
constexpr std::array kWays{Way{1e-4, 0.94}, Way{3e-3, 0.7}, Way{1e-3, 0.94}, Way{1e-4, 0.7},
                           Way{3e-3, 0.85}};

}  // namespace

void approach(const Table& start, std::size_t run, core::StageJudge& judge, Annealing& annealing,
              const Allowance& all,
              const std::function<double(std::int64_t moves, const Allowance&)>& ended) {
    const Way& way = kWays[run % kWays.size()];
    const core::Bytes budget = judge.budget();
    judge.load(start);
    const auto wanted = static_cast<double>(budget.count());
    const double shrink = wanted / static_cast<double>(judge.peak().count());
    const int steps =
        shrink >= 1 ? 0 : static_cast<int>(std::ceil(std::log(shrink) / std::log(way.shrink)));
    const auto anneal = [&](const Cooling& cooling, const Allowance& allowance) {
        annealing.run(cooling, [&](std::int64_t moves) { return ended(moves, allowance); });
    };
    for (int step = 0; step <= steps; ++step) {
        judge.setBudget(
            core::Bytes(static_cast<std::int64_t>(wanted / std::pow(way.shrink, steps - step))));
        annealing.forget();
        anneal({way.hot, way.hot / 30}, all.part(2 * (steps + 1)));
    }
    judge.setBudget(budget);
    anneal({way.hot / 3, 1e-6}, all.part(2));
}

}  // namespace hw::planners
