// SPDX-License-Identifier: MIT
#include "planners/search/recombination.h"

#include <algorithm>
#include <bit>

namespace hw::planners {
namespace {

using namespace hw::core;
using Set = std::vector<std::uint64_t>;  // of items

constexpr int kMostAdded = 16;  // items at one stage; more are rebuilds that do not pay

/// Residents with which a stage can begin.
struct Node {
    Bytes bytes{0};
    std::int64_t cost = INT64_MAX;  // of the best way here, ns; INT64_MAX: none
    std::int32_t from = kNone;      // node of the stage before
};

/// The distinct sets of residents at the beginning of one stage.
struct Layer {
    std::vector<Set> sets;
    std::vector<Node> nodes;
    std::vector<std::int32_t> ofPlan;  // node that each plan has here
};

class Recombination {
public:
    explicit Recombination(StageJudge& judge)
        : judge_(judge), model_(judge.model()), words_((model_.itemCount() + 63) / 64) {
        layers_.resize(static_cast<std::size_t>(model_.end) + 2);
    }

    bool run(const std::vector<RetentionMatrix>& plans, std::size_t width,
             const std::function<bool()>& stop) {
        for (const auto& plan : plans) {
            if (stop()) return false;
            enter(plan);
        }
        layers_[0].nodes[0].cost = 0;
        for (StageIndex k = 0; k <= model_.end; ++k) {
            if (stop()) return false;
            advance(k, width);
        }
        if (layers_.back().nodes[0].cost == INT64_MAX) return false;
        load();
        return true;
    }

private:
    void enter(const RetentionMatrix& plan) {
        std::vector<Set> rows(layers_.size(), Set(words_, 0));
        judge_.forEachRetained(plan, [&](ItemIndex i, StageIndex k) {
            rows[static_cast<std::size_t>(k)][static_cast<std::size_t>(i >> 6)] |= std::uint64_t{1}
                                                                                   << (i & 63);
        });
        for (std::size_t k = 0; k < layers_.size(); ++k) {
            Layer& layer = layers_[k];
            const auto found = std::find(layer.sets.begin(), layer.sets.end(), rows[k]);
            layer.ofPlan.push_back(static_cast<std::int32_t>(found - layer.sets.begin()));
            if (found != layer.sets.end()) continue;
            Node node;
            for (std::size_t w = 0; w < words_; ++w)
                for (std::uint64_t bits = rows[k][w]; bits != 0; bits &= bits - 1)
                    node.bytes +=
                        model_.bytes[64 * w + static_cast<std::size_t>(std::countr_zero(bits))];
            layer.nodes.push_back(node);
            layer.sets.push_back(std::move(rows[k]));
        }
    }

    static bool contains(const Set& set, ItemIndex i) {
        return (set[static_cast<std::size_t>(i >> 6)] >> (i & 63) & 1) != 0;
    }

    static int added(const Set& before, const Set& after) {
        int count = 0;
        for (std::size_t w = 0; w < before.size(); ++w)
            count += std::popcount(after[w] & ~before[w]);
        return count;
    }

    void advance(StageIndex k, std::size_t width) {
        const Layer& here = layers_[static_cast<std::size_t>(k)];
        const Layer& next = layers_[static_cast<std::size_t>(k) + 1];
        for (std::size_t a = 0; a < std::min(width, here.nodes.size()); ++a)
            for (std::size_t b = 0; b < std::min(width, next.nodes.size()); ++b)
                if (added(here.sets[a], next.sets[b]) <= kMostAdded)
                    edge(k, static_cast<std::int32_t>(a), static_cast<std::int32_t>(b));
        for (std::size_t plan = 0; plan < here.ofPlan.size(); ++plan)
            edge(k, here.ofPlan[plan], next.ofPlan[plan]);
    }

    void edge(StageIndex k, std::int32_t a, std::int32_t b) {
        const Layer& here = layers_[static_cast<std::size_t>(k)];
        Layer& next = layers_[static_cast<std::size_t>(k) + 1];
        const Node& from = here.nodes[static_cast<std::size_t>(a)];
        Node& to = next.nodes[static_cast<std::size_t>(b)];
        if (from.cost >= to.cost) return;
        const auto outcome = judge_.between(k, here.sets[static_cast<std::size_t>(a)],
                                            next.sets[static_cast<std::size_t>(b)]);
        if (from.bytes + outcome.height > judge_.budget()) return;
        if (const std::int64_t cost = from.cost + outcome.cost.count(); cost < to.cost)
            to.cost = cost, to.from = a;
    }

    void load() {
        std::vector<const Set*> path(layers_.size());
        std::int32_t node = 0;
        for (std::size_t k = layers_.size(); k-- > 0;) {
            path[k] = &layers_[k].sets[static_cast<std::size_t>(node)];
            node = layers_[k].nodes[static_cast<std::size_t>(node)].from;
        }
        for (ItemIndex i = 0; i < static_cast<ItemIndex>(model_.itemCount()); ++i)
            for (StageIndex k = judge_.firstStage(i); k <= judge_.lastStage(i);) {
                const bool value = contains(*path[static_cast<std::size_t>(k)], i);
                StageIndex to = k;
                while (to < judge_.lastStage(i) &&
                       contains(*path[static_cast<std::size_t>(to) + 1], i) == value)
                    ++to;
                judge_.set(i, k, to, value);
                k = to + 1;
            }
        judge_.settle();
        judge_.commit();
    }

    StageJudge& judge_;
    const StageModel& model_;
    std::size_t words_;
    std::vector<Layer> layers_;
};

}  // namespace

bool recombine(StageJudge& judge, const std::vector<RetentionMatrix>& plans, std::size_t width,
               const std::function<bool()>& stop) {
    return !plans.empty() && Recombination(judge).run(plans, width, stop);
}

}  // namespace hw::planners
