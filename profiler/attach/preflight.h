// SPDX-License-Identifier: MIT
// Whether a process can be attached to, found out without touching it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "profiler/attach/call_frame.h"

namespace hw::profiler {

/// Functions of the process that the injector calls there.
struct Entries {
    std::uint64_t addPendingCall = 0;   // Py_AddPendingCall
    std::uint64_t runSimpleString = 0;  // PyRun_SimpleString
    std::uint64_t mmap = 0, dlopen = 0;
    ReturnPath path;
};

/// Errors: Target, each cause with its own words and cure: no such process, it has ended, another
/// user's, traced by another, not to be looked into, forbidden by ptrace_scope, not 64-bit x86, not
/// Python, no torch yet, the agent out of its sight, recorded already.
core::Result<Entries> checkTarget(pid_t pid, const std::string& agentPath);

struct Candidate {
    pid_t pid = 0;
    std::string command;
    std::string framework;  // "pytorch"; empty: Python without one, or it cannot be told
    bool attachable = false;
    std::string why;                 // where not
    std::string folder;              // where it works; empty: cannot be told
    std::int64_t residentBytes = 0;  // of host memory
    std::int64_t seconds = 0;        // since its start
};

/// Processes of this user (of everybody, for root) that have a framework loaded; with `all`, other
/// Python processes too.
std::vector<Candidate> listCandidates(const std::string& agentPath, bool all);

}  // namespace hw::profiler
