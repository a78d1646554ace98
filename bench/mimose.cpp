// SPDX-License-Identifier: MIT
// Mimose on recorded steps of varying input size: the estimator's error, what planning takes, and
// an epoch under its plans, Chen's static plan and DTR.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <set>

#include "core/import/import.h"
#include "planners/mimose/mimose.h"
#include "planners/plan_with.h"

namespace {

using namespace hw::core;
using namespace hw::planners;

struct RecordedStep {
    TrainingGraph graph;
    StepProfile profile;
    Nanoseconds time;  // baseline's
};

// Equal up to sizes and times, so that a schedule of one is one of the other.
bool sameStructure(const TrainingGraph& a, const TrainingGraph& b) {
    const auto sameEdges = [&](const Op& x, const Op& y) {
        const auto sameUse = [](const Use& u, const Use& v) {
            return u.tensor == v.tensor && u.version == v.version;
        };
        return x.name == y.name && std::equal(x.inputs.begin(), x.inputs.end(), y.inputs.begin(),
                                              y.inputs.end(), sameUse);
    };
    const auto sameTensor = [](const Tensor& x, const Tensor& y) { return x.storage == y.storage; };
    return std::equal(a.ops.begin(), a.ops.end(), b.ops.begin(), b.ops.end(), sameEdges) &&
           std::equal(a.tensors.begin(), a.tensors.end(), b.tensors.begin(), b.tensors.end(),
                      sameTensor);
}

Result<std::vector<RecordedStep>> load(const std::string& path) {
    auto session = openAny(path);
    if (!session) return session.error();
    const auto rows = session->steps();
    if (!rows) return rows.error();
    std::vector<RecordedStep> steps;
    for (const StepRow& row : *rows) {
        auto graph = loadGraph(*session, row.id);
        if (!graph) return graph.error();
        StepProfile profile = profileStep(*graph);
        const Nanoseconds time = graph->totalTime();
        steps.push_back({std::move(*graph), std::move(profile), time});
    }
    // One plan can only serve steps of one structure: the first ones of a training differ.
    std::erase_if(steps, [&](const RecordedStep& step) {
        return !sameStructure(step.graph, steps.back().graph);
    });
    return steps;
}

double microseconds(const std::function<void()>& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
        .count();
}

// An epoch under one planner at one budget.
struct Epoch {
    Nanoseconds time, baseline;  // of the steps that were run within the budget
    int within = 0, over = 0;    // over: no plan, or one above the budget
    double planning = 0;         // microseconds, schedules of ops included

    void add(const RecordedStep& step, Bytes budget, bool planned, Bytes peak, Nanoseconds took) {
        if (!planned || peak > budget) {
            ++over;
            return;
        }
        ++within;
        time += took;
        baseline += step.time;
    }
};

Epoch underMimose(const std::vector<RecordedStep>& steps, const MimoseEstimator& estimator,
                  Bytes budget, double& missMicroseconds, double& hitMicroseconds) {
    InputAwarePlanner planner(estimator, budget);
    Epoch epoch;
    double missTime = 0, hitTime = 0;
    for (const RecordedStep& step : steps) {
        std::optional<LayerChoice> choice;
        const std::int64_t misses = planner.cache().misses();
        const double took = microseconds([&] { choice = planner.choose(step.profile.size); });
        (planner.cache().misses() > misses ? missTime : hitTime) += took;
        if (!choice) {
            epoch.add(step, budget, false, {}, {});
            continue;
        }
        Schedule schedule;
        epoch.planning += took + microseconds([&] { schedule = dropLayers(step.graph, *choice); });
        const Evaluation result = evaluate(step.graph, schedule);
        epoch.add(step, budget, result.valid, result.peak, result.time);
    }
    const auto& cache = planner.cache();
    missMicroseconds = missTime / static_cast<double>(std::max<std::int64_t>(1, cache.misses()));
    hitMicroseconds = hitTime / static_cast<double>(std::max<std::int64_t>(1, cache.hits()));
    return epoch;
}

// One plan, made for the largest step, for all: the steps run the same ops.
Epoch underChen(const std::vector<RecordedStep>& steps, Bytes budget) {
    const auto largest = std::max_element(
        steps.begin(), steps.end(),
        [](const auto& a, const auto& b) { return a.profile.size < b.profile.size; });
    PlanRequest request;
    request.budget = budget;
    const auto outcome = planWith("chen-greedy", largest->graph, request);
    Epoch epoch;
    if (outcome) epoch.planning = outcome->solveSeconds * 1e6;
    for (const RecordedStep& step : steps) {
        if (!outcome || !outcome->plan) {
            epoch.add(step, budget, false, {}, {});
            continue;
        }
        const Evaluation result = evaluate(step.graph, outcome->plan->schedule);
        epoch.add(step, budget, result.valid, result.peak, result.time);
    }
    return epoch;
}

Epoch underEachStepsOwn(const char* planner, const std::vector<RecordedStep>& steps, Bytes budget) {
    Epoch epoch;
    for (const RecordedStep& step : steps) {
        PlanRequest request;
        request.budget = budget;
        const auto outcome = planWith(planner, step.graph, request);
        const bool planned = outcome && outcome->status == PlanStatus::Ok;
        if (outcome) epoch.planning += outcome->solveSeconds * 1e6;
        epoch.add(step, budget, planned, planned ? outcome->peak : Bytes(),
                  planned ? outcome->time : Nanoseconds());
    }
    return epoch;
}

// The estimator sees the first steps of `count` different sizes, as in a running training.
std::vector<StepProfile> firstSizes(const std::vector<RecordedStep>& steps, std::size_t count) {
    std::set<double> seen;
    std::vector<StepProfile> chosen;
    for (const RecordedStep& step : steps) {
        if (seen.size() == count && !seen.contains(step.profile.size)) continue;
        if (!seen.insert(step.profile.size).second) continue;
        chosen.push_back(step.profile);
    }
    return chosen;
}

void printErrors(const std::vector<RecordedStep>& steps, const std::vector<StepProfile>& known,
                 const MimoseEstimator& estimator) {
    std::set<double> sizes;
    for (const StepProfile& step : known) sizes.insert(step.size);
    double worst = 0, sum = 0;
    int count = 0;
    std::printf("\nestimated peak of sizes that were held out\n%12s %14s %14s %9s\n", "input bytes",
                "peak", "estimate", "error");
    for (const RecordedStep& step : steps) {
        const StepProfile& seen = step.profile;
        if (!sizes.insert(seen.size).second) continue;
        const Bytes estimate = estimator.peakAt(seen.size);
        const double error = ratio(estimate - seen.peak, seen.peak);
        std::printf("%12.0f %14lld %14lld %8.3f%%\n", seen.size,
                    static_cast<long long>(seen.peak.count()),
                    static_cast<long long>(estimate.count()), 100 * error);
        worst = std::max(worst, std::abs(error)), sum += std::abs(error), ++count;
    }
    std::printf("%d held-out sizes: mean error %.3f %%, worst %.3f %% (estimated from %zu sizes)\n",
                count, 100 * sum / std::max(count, 1), 100 * worst, known.size());
}

void printEpochs(const std::vector<RecordedStep>& steps, const MimoseEstimator& estimator,
                 const std::string& csvFile) {
    Bytes peak;
    for (const RecordedStep& step : steps) peak = std::max(peak, step.profile.peak);
    std::ofstream csv(csvFile);
    csv << "ratio,budget_bytes,planner,overhead,steps_within,steps_over,planning_ms\n";
    std::printf(
        "\nan epoch at budgets of the largest step's peak, %.2f MB\n"
        "overhead: of the steps within the budget; steps over: the others; planning: of the "
        "whole epoch\n%6s %-14s %10s %12s %12s\n",
        static_cast<double>(peak.count()) / 1e6, "ratio", "planner", "overhead", "steps over",
        "planning ms");
    std::string decisions;
    for (const double share : {0.8, 0.6, 0.4, 0.25}) {
        const Bytes budget(std::llround(static_cast<double>(peak.count()) * share));
        double miss = 0, hit = 0;
        const std::pair<const char*, Epoch> rows[] = {
            {"mimose", underMimose(steps, estimator, budget, miss, hit)},
            {"chen:largest", underChen(steps, budget)},
            {"chen:step", underEachStepsOwn("chen-greedy", steps, budget)},
            {"dtr:eqclass", underEachStepsOwn("dtr:eqclass", steps, budget)}};
        for (const auto& [name, epoch] : rows) {
            char overhead[16] = "-";
            if (epoch.within > 0)
                std::snprintf(overhead, sizeof overhead, "%.4f", ratio(epoch.time, epoch.baseline));
            std::printf("%6.2f %-14s %10s %12d %12.2f\n", share, name, overhead, epoch.over,
                        epoch.planning / 1e3);
            csv << share << ',' << budget.count() << ',' << name << ','
                << (epoch.within > 0 ? overhead : "") << ',' << epoch.within << ',' << epoch.over
                << ',' << epoch.planning / 1e3 << '\n';
        }
        char line[80];
        std::snprintf(line, sizeof line, "%6.2f %12.2f %12.2f\n", share, miss, hit);
        decisions += line;
    }
    std::printf("\nmimose's choice of layers, microseconds\n%6s %12s %12s\n%s", "ratio",
                "cache miss", "cache hit", decisions.c_str());
}

int run(const std::string& session, const std::string& csvFile) {
    const auto steps = load(session);
    if (!steps) {
        std::fprintf(stderr, "%s\n", steps.error().what.c_str());
        return 1;
    }
    const std::vector<StepProfile> known = firstSizes(*steps, 10);
    const auto estimator = MimoseEstimator::fit(known);
    if (!estimator) {
        std::fprintf(stderr, "%s\nhint: %s\n", estimator.error().what.c_str(),
                     estimator.error().hint.c_str());
        return 1;
    }
    std::printf("%zu steps of %zu ops, %zu layers\n", steps->size(), steps->back().graph.ops.size(),
                estimator->layers().size());
    printErrors(*steps, known, *estimator);

    printEpochs(*steps, *estimator, csvFile);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s SESSION TABLE.csv\n", argv[0]);
        return 2;
    }
    return run(argv[1], argv[2]);
}
