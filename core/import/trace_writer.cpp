// SPDX-License-Identifier: MIT
#include "core/import/trace_writer.h"

namespace hw::core {

void require(const Status& status) {
    if (!status) throw SessionRefused{status.error()};
}

std::int64_t TraceWriter::device(const std::string& kind, std::int64_t ordinal) {
    const std::int64_t id = required(session_.device(kind, ordinal));
    if (const auto [at, isNew] = devices_.try_emplace(id); isNew)
        at->second.id = id, at->second.kind = kind, at->second.ordinal = ordinal;
    return id;
}

void TraceWriter::describe(std::int64_t device, const std::string& name,
                           std::optional<std::int64_t> capacityBytes) {
    require(session_.describeDevice(device, name, capacityBytes));
}

void TraceWriter::gap(const std::string& what, const std::string& why) {
    require(session_.insert(GapRow{{}, {}, {}, what, why}));
}

std::optional<std::int64_t> TraceWriter::layer(std::optional<std::int64_t> parent,
                                               const std::string& name, const std::string& type,
                                               const char* separator) {
    const auto known = layers_.find({parent.value_or(0), name});
    if (known != layers_.end()) return known->second;
    std::string path =
        parent ? paths_[static_cast<std::size_t>(*parent) - 1] + separator + name : name;
    if (paths_.size() >= kMostLayers || path.size() > kLongestPath) {
        if (!std::exchange(layersLeftOut_, true))
            gap("layers", "the trace names more or deeper layers than are kept (" +
                              std::to_string(kMostLayers) + ", paths of " +
                              std::to_string(kLongestPath) + " bytes)");
        return parent;
    }
    // Two ways to one path ("a.b" below the root, "b" below "a") are one layer.
    const auto [at, isNew] =
        byPath_.try_emplace(path, static_cast<std::int64_t>(paths_.size()) + 1);
    if (isNew) {
        require(session_.insert(LayerRow{at->second, parent, path, type}));
        paths_.push_back(std::move(path));
    }
    layers_[{parent.value_or(0), name}] = at->second;
    return at->second;
}

std::optional<std::int64_t> TraceWriter::stack(const std::vector<SourceFrameRow>& frames) {
    std::optional<std::int64_t> stack;
    for (SourceFrameRow row : frames) {
        const auto [frame, isNewFrame] = frames_.try_emplace(
            {row.file, row.function, row.line}, static_cast<std::int64_t>(frames_.size()));
        row.id = frame->second;
        if (isNewFrame) require(session_.insert(row));
        const auto [node, isNew] = stacks_.try_emplace({stack.value_or(-1), frame->second},
                                                       static_cast<std::int64_t>(stacks_.size()));
        if (isNew) require(session_.insert(StackRow{node->second, stack, frame->second}));
        stack = node->second;
    }
    return stack;
}

}  // namespace hw::core
