// SPDX-License-Identifier: MIT
// What DTR keeps while it trains a linear network: lifetimes by step, as in the memory traces of
// the paper (ICLR 2021, appendix).
// usage: bench_dtr_trace [CSV [LAYERS]]
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "bench/chain_network.h"
#include "planners/dtr/runtime.h"
#include "planners/schedule/schedule_trace.h"

namespace {

using namespace hw;
using planners::DtrHeuristic;

struct Panel {
    const char* name;
    DtrHeuristic heuristic;
    bool logarithmic;  // a budget of log2(n) instead of 2 sqrt(n)
};

const Panel kPanels[] = {{"h_e*", DtrHeuristic::Neighbourhood, false},
                         {"dtr:full", DtrHeuristic::Full, false},
                         {"dtr:full", DtrHeuristic::Full, true},
                         {"dtr:local", DtrHeuristic::Local, false},
                         {"dtr:lru", DtrHeuristic::Lru, false}};

std::int64_t budgetOf(const Panel& panel, int layers) {
    return static_cast<std::int64_t>(
        std::ceil(panel.logarithmic ? std::log2(layers) : 2 * std::sqrt(layers)));
}

// One row a stretch: layers from the input on; gradients share the row of their layer.
void write(std::FILE* csv, const Panel& panel, std::int64_t budget,
           const core::TrainingGraph& graph, const planners::ScheduleTrace& trace) {
    const auto layers = static_cast<core::StorageIndex>(graph.storages.size() / 2);
    for (const planners::Lifetime& stretch : trace.lifetimes) {
        const bool gradient = stretch.storage >= layers;
        std::fprintf(csv, "%s,%lld,%s,%d,%lld,%lld,%d\n", panel.name,
                     static_cast<long long>(budget), gradient ? "gradient" : "activation",
                     gradient ? 2 * layers - 1 - stretch.storage : stretch.storage,
                     static_cast<long long>(stretch.begin), static_cast<long long>(stretch.end),
                     stretch.by == core::ActionKind::Recompute ? 1 : 0);
    }
}

}  // namespace

int main(int argc, char** argv) {
    std::FILE* csv = argc > 1 ? std::fopen(argv[1], "w") : nullptr;
    const int layers = argc > 2 ? std::atoi(argv[2]) : 200;
    if (argc > 1 && csv == nullptr) {
        std::fprintf(stderr, "cannot write '%s'\n", argv[1]);
        return 1;
    }
    if (csv != nullptr) std::fprintf(csv, "heuristic,bytes,kind,layer,begin,end,recomputed\n");
    const core::TrainingGraph graph = bench::chainNetwork(layers);
    std::printf("%-10s %5s %-11s %7s %10s %12s %14s\n", "heuristic", "B", "status", "steps",
                "extra ops", "stretches", "rematerialized");
    for (const Panel& panel : kPanels) {
        planners::PlanRequest request;
        request.budget = core::Bytes(budgetOf(panel, layers));
        request.thrashLimit = 1e12;  // off
        planners::DtrSettings settings;
        settings.heuristic = panel.heuristic;
        const auto proposal = planners::DtrRuntime(graph, request, {}, settings).run();
        const auto trace = planners::traceOf(graph, proposal.schedule);
        long long again = 0;
        for (const planners::Lifetime& stretch : trace.lifetimes)
            again += stretch.by == core::ActionKind::Recompute;
        std::printf("%-10s %5lld %-11s %7zu %10lld %12zu %14lld\n", panel.name,
                    static_cast<long long>(request.budget.count()),
                    std::string(planners::planStatusName(proposal.status)).c_str(),
                    trace.steps.size(), static_cast<long long>(trace.steps.size()) - 2LL * layers,
                    trace.lifetimes.size(), again);
        if (csv != nullptr) write(csv, panel, request.budget.count(), graph, trace);
    }
    if (csv != nullptr) std::fclose(csv);
    return 0;
}
