// SPDX-License-Identifier: MIT
// The unplanned run is the reference: every result of the planned one must have the same bytes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "executor/replay/observer.h"

namespace hw::executor {

/// Checksums and final bytes of the unplanned run. Also finds inputs that an op changes without
/// saying so in its schema.
class Reference final : public Observer {
public:
    explicit Reference(const core::TrainingGraph& graph) : graph_(graph), ops_(graph.ops.size()) {}

    void beforeOp(core::OpIndex op, const StorageBytes& inputs) override;
    void afterOp(const OpResults& results) override;
    void keep(const FinalState& state);

    /// "op 12 (aten::…) changes an input …": one note an op name.
    const std::vector<std::string>& notes() const { return notes_; }

private:
    friend class Comparison;
    friend class Origins;
    struct OpSums {
        std::vector<std::uint64_t> outputs, written;
    };
    const core::TrainingGraph& graph_;
    std::vector<OpSums> ops_;
    std::map<core::StorageIndex, std::uint64_t>
        known_;  // contents by the last op that touched them
    std::vector<std::uint64_t> finalSums_;
    std::map<core::StorageIndex, std::vector<std::byte>> finalBytes_;
    std::vector<std::vector<std::byte>> generators_;
    std::set<std::string> noted_;
    std::vector<std::string> notes_;
};

struct Difference {
    std::optional<core::OpIndex> op;  // none: a final tensor or generator
    std::string name, layer;
    int output = 0;                          // of the op, or of the final tensors
    core::TensorIndex tensor = core::kNone;  // kNone: a generator, or a write that is no result
    core::StorageIndex storage = core::kNone;
    std::string category;  // of the storage
    bool recomputed = false;
};

struct Figures {
    std::int64_t compared = 0;  // tensors (and generators at the end)
    std::int64_t different = 0;
    std::int64_t nonfinite = 0;  // compared floating ones with an infinity or NaN
    std::optional<Difference> first;
};

/// Compares a planned run with the reference, op by op and at the end.
class Comparison final : public Observer {
public:
    explicit Comparison(const Reference& reference) : reference_(reference) {}

    void afterOp(const OpResults& results) override;
    void compare(const FinalState& state);
    const Figures& figures() const { return figures_; }

private:
    void count(bool equal, const OpResults* results, int output);
    Difference describe(const OpResults* results, int output) const;

    const Reference& reference_;
    Figures figures_;
};

/// Finds the ops at which a run begins to differ: with other results than the reference from inputs
/// that do not come from other such ops. A run of the ops of the reference's graph, which may take
/// other storages in `graph`.
class Origins final : public Observer {
public:
    Origins(const Reference& reference, const core::TrainingGraph& graph)
        : reference_(reference), graph_(graph) {}

    void afterOp(const OpResults& results) override;
    const std::set<core::OpIndex>& ops() const { return ops_; }

private:
    const Reference& reference_;
    const core::TrainingGraph& graph_;
    std::set<core::StorageIndex> tainted_;  // with other contents than in the reference
    std::set<core::OpIndex> ops_;
};

}  // namespace hw::executor
