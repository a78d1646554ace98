// SPDX-License-Identifier: MIT
#include "planners/dtr/dtr.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "planners/dtr/runtime.h"
#include "planners/schedule/free_early.h"

namespace hw::planners {
namespace {

bool has(const PlanRequest& request, const char* option, const char* value) {
    const auto given = request.options.find(option);
    return given != request.options.end() && given->second == value;
}

struct Variant {
    DtrHeuristic heuristic;
    const char* name;
    const char* description;  // after the source
    int colour;
};
constexpr std::array kVariants{
    Variant{DtrHeuristic::Full, "dtr:full", "the evicted neighbourhood, size and staleness", 2},
    Variant{DtrHeuristic::EqClass, "dtr:eqclass",
            "classes of evicted neighbours, size and staleness", 4},
    Variant{DtrHeuristic::Local, "dtr:local", "own compute, size and staleness", 3},
    Variant{DtrHeuristic::Lru, "dtr:lru", "least recently used first", 6},
    Variant{DtrHeuristic::Largest, "dtr:largest", "largest first", 5},
    Variant{DtrHeuristic::Msps, "dtr:msps", "compute of the evicted ancestors by size", 1},
    Variant{DtrHeuristic::Random, "dtr:random", "at random, from the seed", 0},
};

}  // namespace

PlannerInfo Dtr::info(Heuristic heuristic) {
    const auto* const variant =
        std::find_if(kVariants.begin(), kVariants.end(),
                     [&](const Variant& known) { return known.heuristic == heuristic; });
    if (variant == kVariants.end()) return {};
    return {.name = variant->name,
            .description = std::string("DTR (ICLR 2021): ") + variant->description,
            .options = {"dealloc=eager|banish", "frees=early|late", "search=all|some"},
            .family = PlannerFamily::Dtr,
            .colour = variant->colour,
            .quick = true,
            .preselected = heuristic == DtrHeuristic::EqClass,
            .make = [heuristic] { return std::make_unique<Dtr>(heuristic); }};
}

std::optional<Dtr::Heuristic> Dtr::find(std::string_view name) {
    for (const Variant& variant : kVariants)
        if (variant.name == name) return variant.heuristic;
    return std::nullopt;
}

Proposal Dtr::plan(const core::TrainingGraph& graph, const PlanRequest& request,
                   const Progress& progress) const {
    DtrSettings settings;
    settings.heuristic = heuristic_;
    settings.banish = has(request, "dealloc", "banish");
    settings.some = has(request, "search", "some");
    settings.time.seconds = request.timeLimitSeconds.value_or(INFINITY);
    const auto attempt = [&] {
        DtrRuntime runtime(graph, request, progress, settings);
        Proposal proposal = runtime.run();
        if (proposal.status == PlanStatus::Ok && !has(request, "frees", "late"))
            proposal.schedule =
                freeEarly(graph, std::move(proposal.schedule), runtime.peakAction());
        return proposal;
    };
    Proposal proposal = attempt();
    const bool sources =
        std::any_of(graph.ops.begin(), graph.ops.end(), [](const core::Op& op) { return op.once; });
    if (proposal.status != PlanStatus::Infeasible || !sources) return proposal;
    settings.keepSources = true;  // at the cost of their memory
    return attempt();
}

}  // namespace hw::planners
