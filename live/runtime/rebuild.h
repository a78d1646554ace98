// SPDX-License-Identifier: MIT
// Makes storages again from what is there, whatever the plan would do next: for a step that leaves
// the plan, and for code that looks at a storage past the dispatcher.
#pragma once

#include <functional>
#include <stdexcept>
#include <unordered_map>

#include "slots.h"

namespace hw::live::runtime {

/// A storage cannot be made again. Plans that are sent drop none of which this could be true.
struct Unrestorable : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class Rebuild {
public:
    Rebuild(const profiler::native::AgentApi& agent, const Program& program,
            const std::vector<Call>& calls, Slots& slots,
            std::function<void(std::uint32_t op)> before)
        : agent_(agent),
          program_(program),
          calls_(calls),
          slots_(slots),
          before_(std::move(before)) {}

    /// Brings a dropped storage back to the version that the program has brought it to. Throws
    /// Unrestorable, and what the ops throw.
    void restore(std::size_t storage);
    /// The storage itself where it is at that version, else a copy that is.
    StoragePointer at(std::size_t storage, std::int32_t version);
    std::int64_t ops() const { return ops_; }

private:
    struct Copy {
        StoragePointer storage;
        std::int32_t version = 0;
    };
    struct Goal;
    StoragePointer find(std::size_t storage, std::int32_t version);
    std::uint32_t nextOp(const Goal& goal);
    void runAgain(std::uint32_t op, const std::vector<StoragePointer>& inputs);

    const profiler::native::AgentApi& agent_;
    const Program& program_;
    const std::vector<Call>& calls_;
    Slots& slots_;
    std::function<void(std::uint32_t)> before_;  // an op runs again
    std::unordered_map<std::size_t, Copy> copies_;
    std::int64_t ops_ = 0;
};

}  // namespace hw::live::runtime
