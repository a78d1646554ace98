// SPDX-License-Identifier: MIT
// The Python call stacks of a session: of its ops, and of the storages that an allocator's snapshot
// tells without ops.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/result.h"
#include "core/session/session.h"

namespace hw::core {

class CallStacks {
public:
    static constexpr std::int64_t kNone = -1;

    /// Errors: BadInput when the session cannot be read. Empty where it holds no stacks.
    static Result<CallStacks> load(const Session& session);

    bool empty() const { return nodes_.empty(); }

    /// By ids of the session (`sessionId` in a graph); kNone where nothing was recorded.
    std::int64_t ofOp(std::int64_t op) const { return found(ops_, op); }
    /// Of the op that made it, or its own.
    std::int64_t ofStorage(std::int64_t storage) const { return found(storages_, storage); }

    /// All frames of a stack, outermost first; empty for kNone.
    std::vector<const SourceFrameRow*> frames(std::int64_t stack) const;
    /// The operator that a stack of torch's own C++ ends in ("aten::mul"), as an allocator's
    /// snapshot tells it; null where it ends otherwise, and for kNone.
    const SourceFrameRow* operatorOf(std::int64_t stack) const;
    /// The innermost frame that is not the framework's own, else the innermost; null for kNone.
    const SourceFrameRow* line(std::int64_t stack) const;

private:
    struct Node {
        std::int64_t parent = kNone, frame = 0;
    };
    using Ids = std::unordered_map<std::int64_t, std::int64_t>;

    static std::int64_t found(const Ids& ids, std::int64_t id) {
        const auto at = ids.find(id);
        return at == ids.end() ? kNone : at->second;
    }
    const Node* node(std::int64_t stack) const;

    std::unordered_map<std::int64_t, SourceFrameRow> frames_;
    std::unordered_map<std::int64_t, Node> nodes_;
    Ids ops_, storages_;
};

/// "modeling_gpt2.py:312", and "modeling_gpt2.py:312 forward" with the function; of code without a
/// file the function alone, "aten::mul".
std::string lineText(const SourceFrameRow& frame);
std::string frameText(const SourceFrameRow& frame);

/// Whether a file of an imported trace is of torch itself, or of no Python at all: a recording
/// knows where torch is, other sources only name the file.
bool isFrameworkFile(const std::string& file);

}  // namespace hw::core
