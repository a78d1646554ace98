// SPDX-License-Identifier: MIT
// Extra computations of DTR on a linear network: the experiment behind Theorem 3.1 (ICLR 2021).
// usage: bench_dtr_chain [CSV [LARGEST]]
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/chain_network.h"
#include "core/memory/evaluate.h"
#include "planners/dtr/runtime.h"

namespace {

using namespace hw;
using planners::DtrHeuristic;

struct Budget {
    const char* name;
    std::int64_t (*of)(int layers);
    double (*theory)(int layers);  // extra computations of Chen et al. 2016
};

const Budget kBudgets[] = {
    {"2sqrt(n)", [](int n) { return static_cast<std::int64_t>(std::ceil(2 * std::sqrt(n))); },
     [](int n) { return static_cast<double>(n); }},
    {"log2(n)", [](int n) { return static_cast<std::int64_t>(std::ceil(std::log2(n))); },
     [](int n) { return n * std::log2(n); }},
};

struct Contender {
    const char* name;
    DtrHeuristic heuristic;
};

const Contender kContenders[] = {{"dtr:full", DtrHeuristic::Full},
                                 {"h_e*", DtrHeuristic::Neighbourhood},
                                 {"dtr:lru", DtrHeuristic::Lru}};

struct Row {
    std::string status;
    std::int64_t extra = 0;  // ops computed beyond the 2n of the baseline
    double seconds = 0;
};

Row measure(const core::TrainingGraph& graph, std::int64_t budget, DtrHeuristic heuristic) {
    planners::PlanRequest request;
    request.budget = core::Bytes(budget);
    request.thrashLimit = 1e12;  // off
    planners::DtrSettings settings;
    settings.heuristic = heuristic;
    // lru recomputes up to n^2 / 4 ops: too many actions to keep, the runtime's clock must do.
    settings.recordSchedule = heuristic != DtrHeuristic::Lru || graph.ops.size() <= 4096;
    const auto begin = std::chrono::steady_clock::now();
    const planners::Proposal proposal = planners::DtrRuntime(graph, request, {}, settings).run();
    Row row;
    row.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    row.status = planners::planStatusName(proposal.status);
    if (proposal.status != planners::PlanStatus::Ok) return row;
    row.extra = proposal.figures.at("clock") - 1 - graph.totalTime().count();
    if (!settings.recordSchedule) return row;
    const core::Evaluation judged = core::evaluate(graph, proposal.schedule);
    const bool agrees = judged.time.count() == proposal.figures.at("clock") - 1;
    if (!judged.valid || judged.peak > request.budget || !agrees)
        row.status = "refused by the judge";
    return row;
}

}  // namespace

int main(int argc, char** argv) {
    std::FILE* csv = argc > 1 ? std::fopen(argv[1], "w") : nullptr;
    const int largest = argc > 2 ? std::atoi(argv[2]) : 8192;
    if (argc > 1 && csv == nullptr) {
        std::fprintf(stderr, "cannot write '%s'\n", argv[1]);
        return 1;
    }
    if (csv != nullptr)
        std::fprintf(csv, "layers,budget,bytes,heuristic,status,extra,theory,seconds\n");
    std::printf("%6s %-9s %5s %-9s %-11s %10s %8s %10s %9s\n", "layers", "budget", "B", "heuristic",
                "status", "extra ops", "per n", "Chen", "planning");
    bool sound = true;
    for (const Budget& kind : kBudgets) {
        for (int layers = 64; layers <= largest; layers *= 2) {
            const core::TrainingGraph graph = bench::chainNetwork(layers);
            for (const auto& [name, heuristic] : kContenders) {
                // The theorem is about the square root; below it h_e* degrades, and takes minutes.
                if (heuristic == DtrHeuristic::Neighbourhood && &kind != kBudgets) continue;
                const std::int64_t budget = kind.of(layers);
                const Row row = measure(graph, budget, heuristic);
                sound = sound && row.status[0] != 'r';
                std::printf("%6d %-9s %5lld %-9s %-11s %10lld %8.2f %10.0f %7.2f s\n", layers,
                            kind.name, static_cast<long long>(budget), name, row.status.c_str(),
                            static_cast<long long>(row.extra),
                            static_cast<double>(row.extra) / layers, kind.theory(layers),
                            row.seconds);
                std::fflush(stdout);
                if (csv != nullptr)
                    std::fprintf(csv, "%d,%s,%lld,%s,%s,%lld,%.0f,%.4f\n", layers, kind.name,
                                 static_cast<long long>(budget), name, row.status.c_str(),
                                 static_cast<long long>(row.extra), kind.theory(layers),
                                 row.seconds);
            }
        }
    }
    if (csv != nullptr) std::fclose(csv);
    return sound ? 0 : 1;
}
