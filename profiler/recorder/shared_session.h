// SPDX-License-Identifier: MIT
// The session that all processes of a recording are written to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "core/base/result.h"
#include "core/session/common_rows.h"
#include "core/session/session_writer.h"

namespace hw::profiler {

/// The file is made when the first process enters. Layers are common to all processes (ranks of one
/// training have the same), steps count over all of them, and each process has a block of ids and
/// seqs of its own (core::kIdsOfProcess).
class SharedSession {
public:
    struct Member {
        std::int64_t process = 0;  // processes.id
        std::int64_t base = 0;     // to add to the process's own ids and seqs
    };

    explicit SharedSession(std::string path) : path_(std::move(path)) {}

    core::Result<Member> enter(core::ProcessRow row);
    core::CommonRows& common() { return common_; }
    std::int64_t nextStep() { return steps_++; }

    const std::string& path() const { return path_; }
    bool isOpen() const { return session_.has_value(); }
    core::SessionWriter& session() { return *session_; }

private:
    std::string path_;
    std::optional<core::SessionWriter> session_;
    core::CommonRows common_;
    std::int64_t steps_ = 0, processes_ = 0;
};

}  // namespace hw::profiler
