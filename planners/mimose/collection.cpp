// SPDX-License-Identifier: MIT
#include "planners/mimose/collection.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>

#include "planners/mimose/layers.h"

namespace hw::planners {
namespace {

using namespace hw::core;

bool sameLayers(const SeenStep& a, const SeenStep& b) {
    return std::equal(a.layers.begin(), a.layers.end(), b.layers.begin(), b.layers.end(),
                      [](const auto& one, const auto& other) { return one.path == other.path; });
}

/// Bytes of the inputs less those that all of the steps have, as buffers of the model are: these
/// would make sizes look alike.
std::vector<double> sizesOf(const std::vector<const SeenStep*>& steps) {
    std::vector<std::int64_t> common = steps.front()->inputs;
    for (const SeenStep* const step : steps) {
        std::vector<std::int64_t> both;
        std::set_intersection(common.begin(), common.end(), step->inputs.begin(),
                              step->inputs.end(), std::back_inserter(both));
        common = std::move(both);
    }
    const auto sum = [](const std::vector<std::int64_t>& bytes) {
        return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
    };
    std::vector<double> sizes;
    for (const SeenStep* const step : steps)
        sizes.push_back(static_cast<double>(sum(step->inputs) - sum(common)));
    return sizes;
}

}  // namespace

SeenStep seenStep(std::int64_t kind, const TrainingGraph& graph, Bytes untouched) {
    StepProfile profile = profileStep(graph);
    SeenStep step;
    step.kind = kind;
    for (const StorageIndex s : inputStorages(graph))
        step.inputs.push_back(graph.storages[s].bytes.count());
    std::sort(step.inputs.begin(), step.inputs.end());
    step.layers = std::move(profile.layers);
    step.peak = profile.peak + untouched;
    return step;
}

Collection::Due Collection::due(Bytes budget) const {
    Due due;
    if (steps_.empty()) return due;
    std::vector<std::size_t> indices;
    std::vector<const SeenStep*> alike;
    for (std::size_t i = 0; i < steps_.size(); ++i)
        if (sameLayers(steps_[i], steps_.back())) {
            indices.push_back(i);
            alike.push_back(&steps_[i]);
        }
    const std::vector<double> sizes = sizesOf(alike);
    std::set<double> learnt;
    std::vector<StepProfile> profiles;
    for (std::size_t k = 0; k < alike.size(); ++k) {
        if (learnt.size() == kMostSizes && !learnt.contains(sizes[k])) continue;
        learnt.insert(sizes[k]);
        profiles.push_back({sizes[k], alike[k]->layers, alike[k]->peak});
    }
    if (learnt.size() >= kFewestSizes) {
        if (auto estimator = MimoseEstimator::fit(profiles))
            due.planner.emplace(std::move(*estimator), budget);
    } else if (steps_.size() < kPatience) {
        return due;
    }
    for (std::size_t k = 0; k < alike.size(); ++k) {
        if (!alike[k]->planned)
            due.steps.push_back({indices[k], sizes[k]});
        else if (due.planner)
            static_cast<void>(due.planner->choose(sizes[k]));  // its plan is there for others
    }
    return due;
}

}  // namespace hw::planners
