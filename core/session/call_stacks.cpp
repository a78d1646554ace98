// SPDX-License-Identifier: MIT
#include "core/session/call_stacks.h"
#include "core/base/utf8.h"

#include <algorithm>

#include "core/session/access.h"
#include "core/session/circles.h"
#include "core/session/guarded.h"
#include "core/session/step_rows.h"

namespace hw::core {

Result<CallStacks> CallStacks::load(const Session& session) {
    return guarded(session.path(), "reading call stacks", [&] {
        Database& database = databaseOf(session);
        CallStacks stacks;
        if (!database.hasTable("stacks")) return stacks;
        Statement frames(database, "SELECT id, file, function, line, framework FROM source_frames");
        while (frames.step())
            stacks.frames_[frames.integer(0)] = {frames.integer(0), shownName(frames.text(1)),
                                                 shownName(frames.text(2)), frames.integer(3),
                                                 frames.integer(4) != 0};
        Statement nodes(database, "SELECT id, coalesce(parent, -1), frame FROM stacks");
        while (nodes.step()) stacks.nodes_[nodes.integer(0)] = {nodes.integer(1), nodes.integer(2)};
        const std::vector<std::pair<std::int64_t, Node>> known(stacks.nodes_.begin(),
                                                               stacks.nodes_.end());
        requireNoCircle(
            known, "its call stacks", [](const auto& node) { return node.first; },
            [](const auto& node) { return std::optional(node.second.parent); });
        Statement ops(database, "SELECT op, stack FROM op_stacks");
        while (ops.step()) stacks.ops_[ops.integer(0)] = ops.integer(1);
        Statement own(database, "SELECT storage, stack FROM storage_stacks");
        while (own.step()) stacks.storages_[own.integer(0)] = own.integer(1);
        const auto made = [&](std::int64_t storage, std::int64_t creator) {
            if (const auto at = stacks.ops_.find(creator); at != stacks.ops_.end())
                stacks.storages_.emplace(storage, at->second);
        };
        visitPackedSteps(database, OpDetail::Edges, [&](std::int64_t, const StepContents& step) {
            for (const OpRow& op : step.ops)
                if (op.stack) stacks.ops_[op.id] = *op.stack;
            for (const StorageRow& row : step.storages) {
                if (row.stack) stacks.storages_[row.id] = *row.stack;
                if (row.creator) made(row.id, *row.creator);
            }
        });
        Statement storages(database, "SELECT id, creator FROM storages WHERE creator IS NOT NULL");
        while (storages.step()) made(storages.integer(0), storages.integer(1));
        return stacks;
    });
}

const CallStacks::Node* CallStacks::node(std::int64_t stack) const {
    const auto at = nodes_.find(stack);
    return at == nodes_.end() || !frames_.contains(at->second.frame) ? nullptr : &at->second;
}

std::vector<const SourceFrameRow*> CallStacks::frames(std::int64_t stack) const {
    std::vector<const SourceFrameRow*> all;
    for (const Node* at = node(stack); at != nullptr; at = node(at->parent))
        all.push_back(&frames_.at(at->frame));
    std::reverse(all.begin(), all.end());
    return all;
}

const SourceFrameRow* CallStacks::operatorOf(std::int64_t stack) const {
    const Node* innermost = node(stack);
    if (innermost == nullptr) return nullptr;
    const SourceFrameRow& frame = frames_.at(innermost->frame);
    return frame.file.empty() && frame.function.starts_with("aten::") ? &frame : nullptr;
}

const SourceFrameRow* CallStacks::line(std::int64_t stack) const {
    const auto all = frames(stack);
    const auto own = std::find_if(all.rbegin(), all.rend(),
                                  [](const SourceFrameRow* frame) { return !frame->framework; });
    if (own != all.rend()) return *own;
    return all.empty() ? nullptr : all.back();
}

std::string lineText(const SourceFrameRow& frame) {
    if (frame.file.empty()) return frame.function;
    const std::string name = frame.file.substr(frame.file.rfind('/') + 1);
    return frame.line > 0 ? name + ":" + std::to_string(frame.line) : name;
}

std::string frameText(const SourceFrameRow& frame) {
    return frame.file.empty() ? frame.function : lineText(frame) + " " + frame.function;
}

bool isFrameworkFile(const std::string& file) {
    const auto has = [&](const char* part) { return file.find(part) != std::string::npos; };
    if (has("/site-packages/torch/") || has("/dist-packages/torch/") || file.starts_with("torch/"))
        return true;
    return !file.ends_with(".py") && !file.starts_with("<");  // a frame of C++
}

}  // namespace hw::core
