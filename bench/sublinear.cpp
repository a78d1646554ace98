// SPDX-License-Identifier: MIT
// Memory of feature maps over depth, strategy by strategy: the experiment of Chen et al. 2016,
// Figures 5 and 6, on generated networks. Prints CSV: network, depth, strategy, bytes, time over
// the plain step's.
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>

#include "planners/plan_with.h"
#include "tests/graphs/networks.h"
#include "tests/graphs/sharing.h"

namespace {

using namespace hw;
using namespace hw::core;

// Parameters and their gradients weigh nothing: what is left are feature maps and their gradients.
void weighFeatureMapsOnly(TrainingGraph& graph) {
    for (Storage& storage : graph.storages)
        if (storage.category == Category::Parameter || storage.category == Category::Gradient)
            storage.bytes = Bytes(0);
}

void print(const std::string& network, int depth, const char* strategy, Bytes bytes, double time) {
    std::printf("%s,%d,%s,%lld,%.4f\n", network.c_str(), depth, strategy,
                static_cast<long long>(bytes.count()), time);
    std::fflush(stdout);
}

bool planned(const std::string& network, int depth, const TrainingGraph& graph,
             const char* strategy, const char* planner) {
    planners::PlanRequest request;
    request.budget = Bytes(std::numeric_limits<std::int64_t>::max());
    if (std::string_view(planner) == "chen-cheap") request.options.emplace("all", "1");
    const auto outcome = planners::planWith(planner, graph, request);
    if (!outcome || !outcome->plan) {
        std::fprintf(stderr, "%s found no plan for %s %d\n", planner, network.c_str(), depth);
        return false;
    }
    print(network, depth, strategy, outcome->peak, outcome->overhead);
    return true;
}

// `plain` has no in-place ops, `usual` those of a framework.
bool measure(const std::string& network, int depth, TrainingGraph plain, TrainingGraph usual) {
    weighFeatureMapsOnly(plain);
    weighFeatureMapsOnly(usual);
    const bench::SharedMemory memory = bench::sharedMemory(plain, bench::elementWise);
    print(network, depth, "no sharing", memory.separate, 1.0);
    print(network, depth, "in-place", memory.inPlace, 1.0);
    print(network, depth, "sharing", memory.sharing, 1.0);
    return planned(network, depth, usual, "drop cheap ops", "chen-cheap") &&
           planned(network, depth, usual, "sublinear sqrt(n)", "chen-sqrt") &&
           planned(network, depth, usual, "sublinear recursive", "chen-recursive");
}

bool residual(int depth) {
    bench::ResidualNetwork network;
    network.layers = depth;
    network.inPlaceRelu = false;
    TrainingGraph plain = generate(network);
    network.inPlaceRelu = true;
    return measure("residual network", depth, std::move(plain), generate(network));
}

bool lstm(int steps) {
    bench::LstmNetwork network;
    network.steps = steps;
    TrainingGraph graph = generate(network);
    TrainingGraph same = graph;
    return measure("lstm", steps, std::move(graph), std::move(same));
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: %s residual|lstm DEPTH...\n", argv[0]);
        return 2;
    }
    const bool recurrent = std::string_view(argv[1]) == "lstm";
    std::puts("network,depth,strategy,bytes,time");
    for (int i = 2; i < argc; ++i) {
        const int depth = std::atoi(argv[i]);
        if (depth < 1) {
            std::fprintf(stderr, "'%s' is no depth\n", argv[i]);
            return 2;
        }
        if (!(recurrent ? lstm(depth) : residual(depth))) return 1;
    }
    return 0;
}
