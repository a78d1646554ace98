// SPDX-License-Identifier: MIT
// Who records which process: one locked file each, in a folder of this user.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/result.h"

namespace hw::profiler {

/// Held while a process is recorded; gone with its holder, however that ends. Files live in
/// $XDG_RUNTIME_DIR/highwater, or /tmp/highwater-UID where that is not set, named by the process's
/// number in its own PID namespace: a process in another namespace finds the same file.
class Claim {
public:
    /// Errors: Target when somebody holds it, Internal when the file cannot be made.
    static core::Result<Claim> take(pid_t pid);
    /// The recorder of a process, if it is recorded, here or in its container; 0: it runs where we
    /// see no processes.
    static std::optional<pid_t> holder(pid_t pid);

    Claim(Claim&& other) noexcept;
    Claim& operator=(Claim&&) = delete;
    ~Claim();

private:
    Claim(std::string path, int file) : path_(std::move(path)), file_(file) {}

    std::string path_;
    int file_;
};

/// Ranks that a launcher started can be detached from, and not be attached to meanwhile.
class Claims {
public:
    /// Those of `pids` that are new since the last call, where they can be had.
    void take(const std::vector<pid_t>& pids) {
        for (; known_ < pids.size(); ++known_)
            if (auto claim = Claim::take(pids[known_])) held_.push_back(std::move(*claim));
    }

private:
    std::size_t known_ = 0;
    std::vector<Claim> held_;
};

}  // namespace hw::profiler
