// SPDX-License-Identifier: MIT
// Where memory comes from: the lines of code, or the layers, that made what is live at the peak and
// what is saved for the backward.
#pragma once

#include <string>
#include <vector>

#include "core/graph/training_graph.h"
#include "core/memory/evaluate.h"
#include "core/session/call_stacks.h"
#include "core/session/recorded_memory.h"

namespace hw::core {

/// What lists call a storage that no line of the program is known of: by its category, by the op
/// that asked for it, or by a layer in brackets, which says why nothing else is known
/// ("(before the history)"). Empty where none of them is known.
std::string nameWithoutLine(const TrainingGraph& graph, Category category, OpIndex op,
                            LayerIndex layer);

/// Bytes and what made them.
struct Origin {
    Bytes bytes;
    StorageIndex storage = kNone;  // kNone: the workspace of the op
    OpIndex op = kNone;            // that made it; kNone: none in this step
    LayerIndex layer = kNone;
    std::int64_t stack = CallStacks::kNone;
};

/// What is live during the peak of the captured order, the running op's workspace too.
std::vector<Origin> originsAtPeak(const TrainingGraph& graph, const Evaluation& baseline,
                                  const CallStacks& stacks);
/// The same of a trace without a step: what is live at its curve's highest moment. Bytes that the
/// allocator counts then and no storage explains are one origin without a storage.
std::vector<Origin> originsAtPeak(const RecordedMemory& recorded, const CallStacks& stacks);
/// Every activation of the step: what forward saves for backward.
std::vector<Origin> originsSaved(const TrainingGraph& graph, const CallStacks& stacks);

enum class OriginKey : std::uint8_t { Line, File, Function, Layer };

/// What one line, file, function or layer made.
struct OriginGroup {
    std::string name;  // "modeling_gpt2.py:312 forward"; a layer's path; or
                       // what is known of bytes without any, "(parameter)"
    const SourceFrameRow* frame =
        nullptr;                // one of the group's; null by layer. Owned by the stacks
    Bytes peak, saved;          // live at the peak; saved for the backward
    Bytes largest;              // storage at the peak
    std::string largestOp;      // that made it; empty for a constant
    std::int64_t storages = 0;  // at the peak
};

/// The largest at the peak first.
std::vector<OriginGroup> originsBy(OriginKey key, const TrainingGraph& graph,
                                   const CallStacks& stacks, const std::vector<Origin>& atPeak,
                                   const std::vector<Origin>& saved);

/// A tree of bytes by what called what, for a flame graph.
struct OriginNode {
    std::string name;                       // "modeling_gpt2.py:312 forward", a layer, an op
    const SourceFrameRow* frame = nullptr;  // null for layers and ops
    Bytes bytes;
    StorageIndex largest = kNone;      // below it; kNone in what only another session has
    std::vector<OriginNode> children;  // the largest first
    Bytes other;                       // of the same part of another session, once it is beside
    Bytes either;  // of both, in each of its parts the larger one; its own without another session
};

/// Program: call stacks without the framework's own frames.
enum class OriginTree : std::uint8_t { Program, Stack, Layer };

/// Its leaves are the ops that made the bytes.
OriginNode originTree(OriginTree by, const TrainingGraph& graph, const CallStacks& stacks,
                      const std::vector<Origin>& origins);

/// Puts another session's tree beside one: what has the same name below the same parts is one, and
/// what only the other has is added. The largest of either first.
OriginNode besideOther(OriginNode tree, const OriginNode& other);

}  // namespace hw::core
