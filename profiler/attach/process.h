// SPDX-License-Identifier: MIT
// What /proc tells of a process. HIGHWATER_PROC_ROOT names another root than /proc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace hw::profiler {

/// A file that the process has mapped: its path and the address of its first byte.
struct MappedFile {
    std::string path;
    std::uint64_t start = 0;
    bool deleted = false;  // replaced or removed since it was mapped
};

struct ProcessStatus {
    char state = '?';  // as in proc(5): 'Z' has ended, 'D' cannot be interrupted
    uid_t uid = 0;     // effective
    pid_t tracer = 0;  // 0: none
    pid_t parent = 0;
    std::uint64_t capabilities = 0;  // effective
    bool shadowStack = false;        // of return addresses, kept by the processor
};

/// "process 4711", as messages name it.
std::string named(pid_t pid);
std::string procRoot();
/// "/proc/PID/NAME" under the root.
std::string procPath(pid_t pid, const std::string& name);
std::vector<pid_t> processes();

/// Nothing when there is no such process.
std::optional<ProcessStatus> statusOf(pid_t pid);
/// Arguments joined by spaces; "[name]" where it has none. Empty: cannot be read.
std::string commandOf(pid_t pid);
/// Its working folder; empty: cannot be read.
std::string folderOf(pid_t pid);
/// Resident memory, in bytes.
std::int64_t residentBytes(pid_t pid);
/// Since its start.
std::int64_t secondsOf(pid_t pid);
/// Errors: Target when the kernel does not let us look.
core::Result<std::vector<MappedFile>> mappedFiles(pid_t pid);
/// The system call that a thread sleeps in; nothing while it runs or cannot be looked into.
std::optional<long> systemCallOf(pid_t thread);
/// kernel.yama.ptrace_scope; 0 where the kernel has none.
int ptraceScope();

/// "libtorch.so.2" of "/usr/lib/libtorch.so.2".
std::string fileName(const std::string& path);

}  // namespace hw::profiler
