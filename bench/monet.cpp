// SPDX-License-Identifier: MIT
// MONeT's ablation: overhead over the budget with each kind of implementation alone and with all,
// on a generated convolutional network or a recorded session, with the menu that the session holds
// (highwater run --implementations) or, without one, a menu of made-up figures.
// Prints CSV: graph, use, ratio, status, overhead, lower bound over the baseline's time, chosen.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "bench/made_up_menu.h"
#include "core/import/import.h"
#include "core/session/load_menu.h"
#include "planners/plan_with.h"
#include "tests/graphs/networks.h"

namespace {

using namespace hw;
using namespace hw::core;

struct Subject {
    TrainingGraph graph;
    Menu measured;  // empty: none
};

Result<Subject> subjectOf(const std::string& what) {
    if (what.starts_with("residual:")) {
        bench::ResidualNetwork network;
        network.layers = std::max(5, std::atoi(what.c_str() + what.find(':') + 1));
        network.inPlaceRelu = false;  // the menu has it
        return Subject{bench::generate(network), {}};
    }
    auto session = openAny(what);
    if (!session) return session.error();
    const auto step = session->lastStep();
    if (!step) return step.error();
    auto graph = loadGraph(*session, *step);
    if (!graph) return graph.error();
    auto menu = loadMenu(*session, *graph);
    if (!menu) return menu.error();
    return Subject{std::move(*graph), std::move(*menu)};
}

void row(const std::string& planner, const std::string& name, const TrainingGraph& graph,
         const Menu& menu, const char* use, double ratioOfPeak, std::int64_t work) {
    planners::PlanRequest request;
    const Bytes peak = evaluate(graph, baselineSchedule(graph)).peak;
    request.budget =
        Bytes(static_cast<std::int64_t>(static_cast<double>(peak.count()) * ratioOfPeak));
    request.workLimit = work;
    const bool choosing = planner == "monet";
    if (choosing) {
        request.menu = menu;
        request.options = {{"use", use}};
    }
    const auto outcome = planners::planWith(planner, graph, request);
    if (!outcome) {
        std::fprintf(stderr, "%s\n", outcome.error().what.c_str());
        std::exit(1);
    }
    const bool ok = outcome->status == planners::PlanStatus::Ok;
    const char* what = choosing ? (*use == 0 ? "all" : use) : planner.c_str();
    std::printf("%s,%s,%g,%s,", name.c_str(), what, ratioOfPeak,
                std::string(planners::planStatusName(outcome->status)).c_str());
    if (ok) std::printf("%.6f", outcome->overhead);
    std::printf(",");
    if (outcome->lowerBound) std::printf("%.6f", ratio(*outcome->lowerBound, graph.totalTime()));
    std::printf(",%zu,%.2f\n", ok ? outcome->plan->implementations.size() : 0,
                outcome->solveSeconds);
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 4) {
        std::fprintf(stderr, "usage: %s residual:LAYERS|SESSION WORK RATIO…\n", argv[0]);
        return 2;
    }
    const auto subject = subjectOf(argv[1]);
    if (!subject) {
        std::fprintf(stderr, "%s\nhint: %s\n", subject.error().what.c_str(),
                     subject.error().hint.c_str());
        return 1;
    }
    const TrainingGraph* graph = &subject->graph;
    const bool measured = !subject->measured.empty();
    const Menu choices = measured ? subject->measured : bench::madeUpMenu(*graph);
    std::fprintf(stderr, "%s: %zu ops; %zu implementations; %s\n", argv[1], graph->ops.size(),
                 choices.implementations.size(),
                 measured ? "measured on this session" : bench::kMadeUpFigures);
    std::printf("graph,use,ratio,status,overhead,bound,chosen,seconds\n");
    for (int i = 3; i < argc; ++i) {
        row("highwater", argv[1], *graph, choices, "", std::atof(argv[i]), std::atoll(argv[2]));
        for (const char* use :
             {"none", "algorithms", "output-activated", "intermediate", "in-place", ""})
            row("monet", argv[1], *graph, choices, use, std::atof(argv[i]), std::atoll(argv[2]));
    }
    return 0;
}
