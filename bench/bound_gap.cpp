// SPDX-License-Identifier: MIT
// How far lower bounds and plans are from the optimum on small random graphs, where the optimum can
// be found by trying everything. Prints CSV, one row a graph and budget; see bench/bound-gap.
#include <cstdio>
#include <cstdlib>

#include "planners/plan_with.h"
#include "planners/program/cut_relaxation.h"
#include "tests/unit/exhaustive_search.h"

namespace {

using namespace hw;
using namespace hw::core;

constexpr int kMostBits = 14;  // of the tables that are searched
constexpr std::size_t kMostStates = 200'000;

// The best bound of one cut, of all cuts at once with `all`.
Nanoseconds bestBound(const StageModel& model, Bytes budget, bool integer, bool all) {
    std::vector<StageIndex> every;
    for (StageIndex k = 0; k <= model.end; ++k) every.push_back(k);
    planners::CutOptions options;
    options.integer = integer;
    Nanoseconds best = model.graph->totalTime();
    const auto take = [&](const std::vector<StageIndex>& cuts) {
        if (const auto solution = planners::solveCuts(model, budget, cuts, options))
            best = std::max(best, solution->bound);
    };
    if (all) take(every);
    for (const StageIndex cut : every)
        if (!all) take({cut});
    return best;
}

long long count(const std::optional<Nanoseconds>& time) {
    return time ? static_cast<long long>(time->count()) : -1;
}

void measure(unsigned seed, int share, const TrainingGraph& graph, const StageModel& model,
             const test::BestTables& tables, Bytes budget) {
    const test::BestSchedule best(graph, budget, kMostStates);
    if (best.exhausted() || !best.time()) return;
    planners::PlanRequest request;
    request.budget = budget;
    request.workLimit = 10;
    const auto found = planners::planWith("highwater", graph, request);
    const bool ok = found && found->status == planners::PlanStatus::Ok;
    std::printf("%u,%d,%lld,%lld,%lld,%lld,%lld,%lld,%lld\n", seed, share, count(graph.totalTime()),
                count(best.time()), count(tables.time(budget)),
                count(bestBound(model, budget, true, false)),
                count(bestBound(model, budget, false, false)),
                count(bestBound(model, budget, true, true)), ok ? count(found->time) : -1LL);
}

}  // namespace

int main(int argc, char** argv) {
    const int graphs = argc > 1 ? std::atoi(argv[1]) : 2000;
    if (graphs < 1 || !planners::haveSolver()) {
        std::fprintf(stderr, "usage: %s [GRAPHS]; needs a build with HiGHS\n", argv[0]);
        return 2;
    }
    std::puts("seed,share,baseline,schedule,table,one_cut,one_cut_lp,all_cuts,highwater");
    unsigned seed = 0;
    for (int done = 0; done < graphs; ++seed) {
        const TrainingGraph graph = test::smallGraph(seed);
        const StageModel model(graph);
        if (test::BestTables::bits(model) > kMostBits || graph.storages.size() > 32) continue;
        ++done;
        const test::BestTables tables(model);
        const Bytes low = graph.floorBytes(), high = evaluate(graph, baselineSchedule(graph)).peak;
        for (const int share : {0, 25, 50, 75})
            if (low < high)
                measure(seed, share, graph, model, tables,
                        low + Bytes((high - low).count() * share / 100));
    }
    return 0;
}
