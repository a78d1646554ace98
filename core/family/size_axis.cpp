// SPDX-License-Identifier: MIT
#include "core/family/size_axis.h"

#include <algorithm>
#include <map>
#include <set>

namespace hw::core {
namespace {

/// A dimension of a tensor that is not the same in all records.
struct Varying {
    TensorIndex tensor = kNone;
    int dimension = 0;
    std::vector<std::int64_t> sizes;  // by record
};

std::vector<Varying> varyingOf(TensorIndex tensor, const ShapesOfRecords& shapes) {
    std::vector<Varying> found;
    const std::vector<std::int64_t>& first = shapes.front()[tensor];
    for (const auto& record : shapes)
        if (record[tensor].size() != first.size()) return found;
    for (std::size_t d = 0; d < first.size(); ++d) {
        Varying made{tensor, static_cast<int>(d), {}};
        for (const auto& record : shapes) made.sizes.push_back(record[tensor][d]);
        if (std::set<std::int64_t>(made.sizes.begin(), made.sizes.end()).size() > 1)
            found.push_back(std::move(made));
    }
    return found;
}

/// What a step trains on, by tensor: ops compute with it, and no op made its bytes from others. A
/// view of it may be a batch of a larger set of data; the batch of the step before, which may still
/// be there, is read by no op.
std::vector<bool> batchTensors(const TrainingGraph& graph) {
    std::vector<bool> batch(graph.tensors.size(), false);
    for (const Op& op : graph.ops) {
        if (op.viewOnly) continue;
        for (const Use& use : op.inputs) {
            const Storage& storage = graph.storages[graph.storageOf(use.tensor)];
            batch[use.tensor] = storage.isConstant()
                                    ? !storage.isParameter() &&
                                          storage.category != Category::Gradient &&
                                          storage.category != Category::OptimizerState
                                    : graph.ops[storage.creator].inputs.empty();
        }
    }
    return batch;
}

std::string shapeText(const std::vector<std::int64_t>& shape) {
    std::string text;
    for (const std::int64_t n : shape) text += (text.empty() ? "" : ", ") + std::to_string(n);
    return "[" + text + "]";
}

Result<SizeAxis> wanted(const std::vector<std::vector<Varying>>& batch,
                        const ShapesOfRecords& shapes, int dimension) {
    for (const std::vector<Varying>& tensor : batch)
        for (const Varying& varying : tensor) {
            if (varying.dimension != dimension) continue;
            // Records with the same other dimensions; of several such groups the largest.
            std::map<std::vector<std::int64_t>, std::vector<std::size_t>> groups;
            for (std::size_t record = 0; record < shapes.size(); ++record) {
                std::vector<std::int64_t> others = shapes[record][varying.tensor];
                others[dimension] = 0;
                groups[others].push_back(record);
            }
            const auto most = std::max_element(
                groups.begin(), groups.end(),
                [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
            SizeAxis axis{varying.tensor, dimension, std::vector<std::int64_t>(shapes.size(), 0)};
            std::set<std::int64_t> different;
            for (const std::size_t record : most->second)
                different.insert(axis.sizes[record] = varying.sizes[record]);
            if (different.size() > 1) return axis;
        }
    return Error{
        ErrorCode::Usage,
        "no two records differ in dimension " + std::to_string(dimension) + " of the batch alone",
        "give --vary the dimension that does, from 0, or record another size of it"};
}

}  // namespace

Result<SizeAxis> findSizeAxis(const TrainingGraph& graph, const ShapesOfRecords& shapes,
                              std::optional<int> vary) {
    const std::vector<bool> isBatch = batchTensors(graph);
    std::vector<std::vector<Varying>> batch, all;  // by tensor
    for (TensorIndex t = 0; t < static_cast<TensorIndex>(graph.tensors.size()); ++t) {
        std::vector<Varying> varying = varyingOf(t, shapes);
        if (varying.empty()) continue;
        if (isBatch[t]) batch.push_back(varying);
        all.push_back(std::move(varying));
    }
    if (std::all_of(shapes.front().begin(), shapes.front().end(),
                    [](const std::vector<std::int64_t>& shape) { return shape.empty(); }))
        return badInput("no shapes of tensors are recorded, which tell the size",
                        "use sessions that 'highwater record' made");
    if (batch.empty()) batch = std::move(all);
    if (batch.empty())
        return badInput("the records are of one size only: no tensor of the step has another shape",
                        "record the program again with another batch, and give both records");
    if (vary) return wanted(batch, shapes, *vary);

    std::map<std::vector<std::int64_t>, std::pair<int, const Varying*>> counted;
    for (const std::vector<Varying>& tensor : batch)
        for (const Varying& varying : tensor) {
            if (varying.sizes != tensor.front().sizes)
                return badInput("the records differ in several dimensions: a batch is " +
                                    shapeText(shapes.front()[varying.tensor]) + " in one and " +
                                    shapeText(shapes.back()[varying.tensor]) + " in another",
                                "choose one with --vary " +
                                    std::to_string(tensor.front().dimension) + " or --vary " +
                                    std::to_string(varying.dimension) +
                                    ", with two records that differ in it alone");
            auto& [count, example] = counted[varying.sizes];
            if (count++ == 0) example = &varying;
        }
    // The most frequent; the smallest one where several are.
    const auto most = std::max_element(
        counted.begin(), counted.end(),
        [](const auto& a, const auto& b) { return a.second.first < b.second.first; });
    const Varying& chosen = *most->second.second;
    return SizeAxis{chosen.tensor, chosen.dimension, chosen.sizes};
}

}  // namespace hw::core
