// SPDX-License-Identifier: MIT
#include "planners/program/checkmate_size.h"

#include <algorithm>
#include <numeric>

namespace hw::planners {

using namespace hw::core;

StageIndex groupEnd(const StageModel& model, const CheckmateSize& size, std::size_t g) {
    return g + 1 < size.begin.size() ? size.begin[g + 1] : model.end + 1;
}

bool isKept(const CheckmateSize& size, ItemIndex i) {
    return !size.kept.empty() && size.kept[i];
}

std::vector<StageIndex> usefulUntil(const StageModel& model, const CheckmateSize& size) {
    std::vector<StageIndex> last(model.graph->ops.size() + 1, kNone);
    for (ItemIndex i = 0; i < static_cast<ItemIndex>(model.itemCount()); ++i) {
        if (isKept(size, i)) continue;
        for (const OpIndex op : model.chain[i]) last[op] = std::max(last[op], model.neededUntil[i]);
    }
    return last;
}

CheckmateSize fullSize(const StageModel& model) {
    CheckmateSize size;
    size.begin.resize(static_cast<std::size_t>(model.end) + 1);
    std::iota(size.begin.begin(), size.begin.end(), 0);
    return size;
}

CheckmateSize coarseSize(const StageModel& model, std::size_t groups, Bytes keptBytes) {
    const auto stages = static_cast<std::size_t>(model.end) + 1;
    groups = std::clamp<std::size_t>(groups, 1, stages);
    CheckmateSize size;
    for (std::size_t g = 0; g < groups; ++g)
        size.begin.push_back(static_cast<StageIndex>(g * stages / groups));
    std::vector<ItemIndex> bySize(model.itemCount());
    std::iota(bySize.begin(), bySize.end(), 0);
    std::stable_sort(bySize.begin(), bySize.end(),
                     [&](ItemIndex a, ItemIndex b) { return model.bytes[a] < model.bytes[b]; });
    size.kept.assign(model.itemCount(), false);
    for (const ItemIndex i : bySize) {
        if (model.bytes[i] > keptBytes) break;
        keptBytes -= model.bytes[i];
        size.kept[i] = true;
    }
    return size;
}

std::size_t estimatedColumns(const StageModel& model, const CheckmateSize& size) {
    const std::vector<StageIndex> useful = usefulUntil(model, size);
    std::size_t columns = 0;
    for (const StageIndex begin : size.begin) {
        for (OpIndex op = 0; op < static_cast<OpIndex>(model.graph->ops.size()); ++op)
            if (!model.lazy(op) && model.stageOf[op] < begin && useful[op] >= begin)
                columns += 2 + model.inputs[op].size();
        for (ItemIndex i = 0; i < static_cast<ItemIndex>(model.itemCount()); ++i)
            if (model.born[i] < begin && model.neededUntil[i] >= begin && !isKept(size, i))
                ++columns;
    }
    return columns;
}

std::vector<std::vector<bool>> roundRetained(const std::vector<std::vector<double>>& retained,
                                             double threshold) {
    std::vector<std::vector<bool>> rounded;
    for (const std::vector<double>& group : retained) {
        std::vector<bool>& made = rounded.emplace_back(group.size());
        for (std::size_t i = 0; i < group.size(); ++i) made[i] = group[i] >= threshold;
    }
    return rounded;
}

void importRetained(StageJudge& judge, const CheckmateSize& size,
                    const std::vector<std::vector<bool>>& retained) {
    const StageModel& model = judge.model();
    const std::size_t groups = size.begin.size();
    for (ItemIndex i = 0; i < static_cast<ItemIndex>(model.itemCount()); ++i) {
        judge.set(i, judge.firstStage(i), judge.lastStage(i), isKept(size, i));
        if (isKept(size, i)) continue;
        const auto uses = model.uses[i];
        for (std::size_t g = 0; g < groups; ++g) {
            const StageIndex begin = size.begin[g], end = groupEnd(model, size, g);
            if (model.born[i] >= end || model.neededUntil[i] < begin) continue;
            if (model.born[i] < begin) judge.set(i, begin, begin, retained[g][i]);
            // Within the group: as long as one of its ops reads it, or to its end.
            const auto after = std::lower_bound(uses.begin(), uses.end(), end);
            StageIndex until = after == uses.begin() ? kNone : *(after - 1);
            if (g + 1 < groups && retained[g + 1][i]) until = end - 1;
            judge.set(i, std::max(begin, model.born[i]) + 1, until, true);
        }
    }
    judge.settle();
    judge.commit();
}

}  // namespace hw::planners
