// SPDX-License-Identifier: MIT
// What was recomputed and has other bytes than what was dropped: the end of the program, as nothing
// may go on with them.
#pragma once

#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "agent_api.h"
#include "format.h"

namespace hw::live::runtime {

using MismatchKind = profiler::wire::MismatchKind;

struct Mismatch {
    std::int64_t op = -1;       // its number in the step, from 0
    std::int64_t program = -1;  // the plan's, in the order in which they were given; -1: no plan
    std::string name;
    std::string layer, line;  // empty where they are not known
    std::int64_t bytes = 0;   // of the storage
    MismatchKind kind = MismatchKind::Unknown;
};

/// In words, with the likely cause.
std::string describe(const Mismatch& mismatch);
/// Tells the recorder.
void send(const profiler::native::AgentApi& agent, const Mismatch& mismatch);

/// Thrown into the program.
struct OtherBytes : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Ops that came back with other bytes in an earlier run of the program: what they make stays.
class KeptOps {
public:
    /// Lines of a number in the step (-1: all of that name) and a name; "sources" alone: bytes that
    /// code past the dispatcher may write have changed.
    void read(const std::string& lines);
    bool empty() const { return ops_.empty(); }
    bool has(const std::string& name, std::int64_t number) const;
    bool sourcesChange() const { return sourcesChange_; }
    /// Each once.
    std::set<std::string> names() const;

private:
    struct Op {
        std::int64_t number;
        std::string name;
    };
    std::vector<Op> ops_;
    bool sourcesChange_ = false;
};

}  // namespace hw::live::runtime
