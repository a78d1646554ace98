// SPDX-License-Identifier: MIT
// Planning time over the size of the graph, on generated networks. Prints CSV; see
// bench/solve-time.
//   bench_solve_time {size|exact|growth:PLANNER} SECONDS RATIO {chain|residual|lstm} SIZE...
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "bench/chain_network.h"
#include "core/base/freed_memory.h"
#include "core/memory/plan_layout.h"
#include "planners/plan_with.h"
#include "planners/program/checkmate_program.h"
#include "planners/program/cut_relaxation.h"
#include "planners/schedule/lookahead.h"
#include "tests/graphs/networks.h"

namespace {

using namespace hw;
using namespace hw::core;
using namespace hw::planners;

struct Settings {
    double seconds = 10;  // a search may take
    double ratio = 0.5;   // budget over the baseline's peak
};

class Watch {
public:
    double seconds() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    }

private:
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

Bytes budgetOf(const TrainingGraph& graph, double ratio) {
    const Bytes peak = evaluate(graph, baselineSchedule(graph)).peak;
    return Bytes(static_cast<std::int64_t>(static_cast<double>(peak.count()) * ratio));
}

Outcome plan(const char* planner, const TrainingGraph& graph, Bytes budget, double seconds) {
    PlanRequest request;
    request.budget = budget;
    request.timeLimitSeconds = seconds;
    auto outcome = planWith(planner, graph, request);
    return outcome ? std::move(*outcome) : Outcome{};
}

// The steps of `highwater` one by one, then all of it.
void measureSize(const std::string& name, int size, const TrainingGraph& graph,
                 const Settings& settings) {
    const Bytes budget = budgetOf(graph, settings.ratio);
    const Watch modelWatch;
    const StageModel model(graph);
    StageJudge judge(model, budget);
    judge.trim();
    const StageIndex highest = judge.highestStage();
    const double modelSeconds = modelWatch.seconds();

    const Watch firstWatch;
    lookahead(judge, Distance::Root, {}, [] { return false; });
    judge.trim();
    const double firstSeconds = firstWatch.seconds();
    const bool fits = judge.overflow() == Bytes(0);

    const Watch boundWatch;
    CutOptions options;
    options.limits.seconds = settings.seconds;
    const auto bound = solveCuts(model, budget, {highest}, options);
    const double boundSeconds = boundWatch.seconds();

    const Outcome all = plan("highwater", graph, budget, settings.seconds);
    const auto percent = [&](Nanoseconds time) {
        return 100 * (ratio(time, graph.totalTime()) - 1);
    };
    std::printf(
        "%s,%d,%zu,%zu,%.4f,%.4f,%.4f,%.4f,%.4f,%s,%.4f,%.4f,%.3f\n", name.c_str(), size,
        graph.ops.size(), model.itemCount(), modelSeconds, firstSeconds,
        fits ? percent(judge.time()) : -1.0, boundSeconds, bound ? percent(bound->bound) : 0.0,
        std::string(planStatusName(all.status)).c_str(), all.plan ? 100 * (all.overhead - 1) : -1.0,
        100 * all.gap.value_or(-0.01), all.solveSeconds);
    std::fflush(stdout);
}

// The exact program against the shortest run of `highwater` that finds a plan as cheap; false when
// the program did not finish.
bool measureExact(const std::string& name, int size, const TrainingGraph& graph,
                  const Settings& settings) {
    const Bytes budget = budgetOf(graph, settings.ratio);
    const StageModel model(graph);
    const Watch watch;
    CheckmateOptions options;
    options.limits.seconds = settings.seconds;
    StageJudge start(model, budget);
    lookahead(start, Distance::Root, {}, [] { return false; });
    start.trim();
    if (start.overflow() == Bytes(0)) options.start = &start;
    const auto exact = solveCheckmate(model, budget, fullSize(model), options);
    const double exactSeconds = watch.seconds();
    const bool infeasible = exact && exact->status == SolveStatus::Infeasible;
    const bool finished = infeasible || (exact && exact->status == SolveStatus::Optimal);
    const auto percent = [&](Nanoseconds time) {
        return 100 * (ratio(time, graph.totalTime()) - 1);
    };
    Nanoseconds optimum(-1);  // as judged, the program's own figure is rounded down
    if (finished && !infeasible) {
        StageJudge judge(model, budget);
        importRetained(judge, fullSize(model), roundRetained(exact->retained, 0.5));
        if (judge.overflow() == Bytes(0)) optimum = judge.time();
    }
    Outcome ours;
    for (double limit = 0.05; limit < 2 * settings.seconds; limit *= 2) {
        ours = plan("highwater", graph, budget, limit);
        if (ours.plan && (!finished || ours.time <= optimum)) break;
        if (infeasible) break;
        if (!finished && limit > 1) break;
    }
    std::printf("%s,%d,%zu,%zu,%s,%.4f,%.4f,%.4f,%.4f\n", name.c_str(), size, graph.ops.size(),
                estimatedColumns(model, fullSize(model)),
                !finished    ? "unfinished"
                : infeasible ? "infeasible"
                             : "optimal",
                exactSeconds, optimum.count() < 0 ? -1.0 : percent(optimum), ours.solveSeconds,
                ours.plan ? percent(ours.time) : -1.0);
    std::fflush(stdout);
    return finished;
}

// A planner and its overhead, "judge" (the baseline's schedule) or "layout" (its blocks, and the
// arena beyond the peak), on ever larger graphs.
void measureGrowth(const std::string& planner, const std::string& name, int size,
                   const TrainingGraph& graph, const Settings& settings) {
    double seconds = 0, percent = -1;
    PlanStatus status = PlanStatus::Ok;
    if (planner == "judge" || planner == "layout") {
        const Schedule schedule = baselineSchedule(graph);
        const Watch watch;
        const Bytes peak = evaluate(graph, schedule).peak;
        if (planner == "layout")
            percent = 100 * (ratio(layOut(graph, schedule, {}).arena, peak) - 1);
        seconds = watch.seconds();
    } else {
        const Watch watch;
        const Outcome outcome =
            plan(planner.c_str(), graph, budgetOf(graph, settings.ratio), settings.seconds);
        seconds = watch.seconds();
        status = outcome.status;
        if (outcome.plan) percent = 100 * (outcome.overhead - 1);
    }
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    std::printf("%s,%d,%zu,%s,%s,%.4f,%.4f,%ld\n", name.c_str(), size, graph.ops.size(),
                planner.c_str(), std::string(planStatusName(status)).c_str(), seconds, percent,
                usage.ru_maxrss / 1024);
    std::fflush(stdout);
}

TrainingGraph generate(std::string_view name, int size) {
    if (name == "chain") return bench::chainNetwork(size);
    if (name == "residual") {
        bench::ResidualNetwork network;
        network.layers = size;
        return generate(network);
    }
    bench::LstmNetwork network;
    network.steps = size;
    return generate(network);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 6 || !haveSolver()) {
        std::fprintf(
            stderr,
            "usage: %s size|exact|growth:PLANNER SECONDS RATIO chain|residual|lstm SIZE...; "
            "needs a build with HiGHS\n",
            argv[0]);
        return 2;
    }
    const std::string mode = argv[1];
    const bool exact = mode == "exact";
    const std::string grown = mode.rfind("growth:", 0) == 0 ? mode.substr(7) : "";
    const Settings settings{std::atof(argv[2]), std::atof(argv[3])};
    std::puts(!grown.empty() ? "network,size,ops,planner,status,seconds,overhead,peak_mib"
              : exact ? "network,size,ops,columns,status,exact_s,optimum,highwater_s,highwater"
                      : "network,size,ops,items,model_s,first_plan_s,first_plan,bound_s,bound,"
                        "status,overhead,gap,total_s");
    keepFreedMemory();  // as `highwater plan` does
    for (int i = 5; i < argc; ++i) {
        const int size = std::atoi(argv[i]);
        if (size < 1) return 2;
        const TrainingGraph graph = generate(argv[4], size);
        if (!grown.empty())
            measureGrowth(grown, argv[4], size, graph, settings);
        else if (!exact)
            measureSize(argv[4], size, graph, settings);
        else if (!measureExact(argv[4], size, graph, settings))
            break;
    }
    return 0;
}
