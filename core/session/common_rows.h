// SPDX-License-Identifier: MIT
// What the processes of a session have in common: layers, places in the code, call stacks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "core/session/session_writer.h"

namespace hw::core {

/// Writes each of them once: ranks of one training have the same layers and the same code. Ids are
/// the session's; those in the rows that are given are looked past, but for parents and frames,
/// which are the session's already. Errors: those of the writer.
class CommonRows {
public:
    /// The layer with this path.
    Result<std::int64_t> layer(SessionWriter& session, LayerRow row);
    Result<std::int64_t> sourceFrame(SessionWriter& session, SourceFrameRow row);
    Result<std::int64_t> stack(SessionWriter& session, StackRow row);

private:
    std::map<std::string, std::int64_t> layers_;  // by path
    std::map<std::tuple<std::string, std::string, std::int64_t>, std::int64_t> frames_;
    std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> stacks_;  // by parent and frame
};

}  // namespace hw::core
