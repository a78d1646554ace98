// SPDX-License-Identifier: MIT
#include "planners/checkpoints/choose_checkpoints.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "core/memory/evaluate.h"
#include "planners/checkpoints/forecast.h"

namespace hw::planners {
namespace {

using namespace hw::core;

constexpr int kMostForecasts = 400;

// Whether it is a module that is called: lists of modules only hold some.
bool isModule(const TrainingGraph& graph, LayerIndex layer) {
    const auto& [path, type, parent] = graph.layers[layer];
    return !path.empty() && path.front() != '(' && type != "ModuleList" && type != "ModuleDict";
}

class CheckpointSearch {
public:
    CheckpointSearch(const TrainingGraph& graph, const Schedule& schedule)
        : graph_(graph),
          info_(rebuildInfo(graph)),
          held_(heldByPlan(graph, schedule)),
          goal_(evaluate(graph, schedule).peak),
          children_(graph.layers.size()) {
        for (std::size_t i = 0; i < graph.layers.size(); ++i)
            if (graph.layers[i].parent != kNone)
                children_[graph.layers[i].parent].push_back(static_cast<LayerIndex>(i));
        const Evaluation none = evaluate(graph, baselineSchedule(graph));
        bestScore_ = score({none.peak, none.time});
    }

    std::optional<CheckpointChoice> run() {
        for (const std::vector<LayerIndex>& cut : cuts())
            for (const bool keepsPlan : {true, false}) {
                std::vector<CheckpointRegion> regions;
                regions.reserve(cut.size());
                for (const LayerIndex layer : cut) regions.push_back({layer, keepsPlan});
                consider(std::move(regions));
            }
        for (bool better = true; better && forecasts_ < kMostForecasts;) better = improve();
        return best_;
    }

private:
    using Score = std::tuple<bool, std::int64_t, std::int64_t>;
    // Within the plan's peak the time counts, above it the peak.
    Score score(const CheckpointForecast& of) const {
        const bool over = of.peak > goal_;
        return {over, over ? of.peak.count() : of.time.count(),
                over ? of.time.count() : of.peak.count()};
    }

    // Cuts through the tree: the largest modules that make at most a share of what backward wants;
    // and for every depth the modules there, with those above that have no children.
    std::vector<std::vector<LayerIndex>> cuts() const {
        std::vector<std::vector<LayerIndex>> found;
        std::vector<Bytes> made(graph_.layers.size());
        for (std::size_t s = 0; s < graph_.storages.size(); ++s)
            if (held_.wanted[s])
                for (LayerIndex layer = graph_.ops[graph_.storages[s].creator].layer;
                     layer != kNone; layer = graph_.layers[layer].parent)
                    made[layer] += graph_.storages[s].bytes;
        for (int share = 2; share <= 64; share *= 2) {
            std::vector<LayerIndex>& cut = found.emplace_back();
            std::vector<bool> covered(graph_.layers.size(), false);  // parents come first
            for (std::size_t i = 0; i < graph_.layers.size(); ++i) {
                const LayerIndex layer = static_cast<LayerIndex>(i),
                                 parent = graph_.layers[i].parent;
                covered[i] = parent != kNone && covered[parent];
                const bool small = made[i] * share <= goal_ || children_[i].empty();
                if (covered[i] || !isModule(graph_, layer) || !small) continue;
                covered[i] = true;
                if (made[i] > Bytes(0)) cut.push_back(layer);
            }
        }
        std::vector<LayerIndex> level;
        for (std::size_t i = 0; i < graph_.layers.size(); ++i)
            if (graph_.layers[i].parent == kNone) level.push_back(static_cast<LayerIndex>(i));
        for (bool deeper = true; deeper;) {
            std::vector<LayerIndex> modules, next;
            deeper = false;
            for (const LayerIndex layer : level) {
                if (isModule(graph_, layer)) modules.push_back(layer);
                if (children_[layer].empty()) {
                    next.push_back(layer);
                    continue;
                }
                deeper = true;
                next.insert(next.end(), children_[layer].begin(), children_[layer].end());
            }
            if (!modules.empty()) found.push_back(std::move(modules));
            level = std::move(next);
        }
        return found;
    }

    // Fewer regions that do as well are better.
    bool consider(std::vector<CheckpointRegion> regions) {
        std::sort(regions.begin(), regions.end(),
                  [](const auto& a, const auto& b) { return a.layer < b.layer; });
        std::vector<std::pair<LayerIndex, bool>> key;
        key.reserve(regions.size());
        for (const CheckpointRegion& region : regions)
            key.emplace_back(region.layer, region.keepsPlan);
        if (!seen_.insert(std::move(key)).second || forecasts_ >= kMostForecasts) return false;
        ++forecasts_;
        const auto outcome = forecast(graph_, info_, held_, regions);
        if (!outcome) return false;
        const bool fewer = best_ && regions.size() < best_->regions.size();
        if (fewer ? score(*outcome) > bestScore_ : score(*outcome) >= bestScore_) return false;
        bestScore_ = score(*outcome);
        best_ = CheckpointChoice{std::move(regions), *outcome};
        return true;
    }

    // One round of moves from the best; the first that helps is taken.
    bool improve() {
        if (!best_) return false;
        const std::vector<CheckpointRegion> base = best_->regions;
        for (std::size_t i = 0; i < base.size(); ++i) {
            std::vector<CheckpointRegion> without = base;
            without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
            if (consider(without)) return true;
            std::vector<CheckpointRegion> flipped = base;
            flipped[i].keepsPlan = !flipped[i].keepsPlan;
            if (consider(flipped)) return true;
            if (consider(split(without, base[i]))) return true;
            if (consider(joined(base, base[i]))) return true;
        }
        return false;
    }
    std::vector<CheckpointRegion> split(std::vector<CheckpointRegion> rest,
                                        const CheckpointRegion& region) const {
        for (const LayerIndex child : children_[region.layer])
            rest.push_back({child, region.keepsPlan});
        return rest;
    }
    std::vector<CheckpointRegion> joined(std::vector<CheckpointRegion> regions,
                                         const CheckpointRegion& with) const {
        const LayerIndex parent = graph_.layers[with.layer].parent;
        if (parent == kNone || !isModule(graph_, parent)) return regions;
        std::erase_if(regions, [&](const CheckpointRegion& region) {
            return isWithin(graph_, region.layer, parent);
        });
        regions.push_back({parent, with.keepsPlan});
        return regions;
    }

    const TrainingGraph& graph_;
    const RebuildInfo info_;
    const HeldByPlan held_;
    const Bytes goal_;
    std::vector<std::vector<LayerIndex>> children_;
    std::set<std::vector<std::pair<LayerIndex, bool>>> seen_;
    std::optional<CheckpointChoice> best_;
    Score bestScore_;
    int forecasts_ = 0;
};

}  // namespace

std::optional<CheckpointChoice> chooseCheckpoints(const TrainingGraph& graph,
                                                  const Schedule& schedule) {
    return CheckpointSearch(graph, schedule).run();
}

}  // namespace hw::planners
