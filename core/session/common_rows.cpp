// SPDX-License-Identifier: MIT
#include "core/session/common_rows.h"

namespace hw::core {

Result<std::int64_t> CommonRows::layer(SessionWriter& session, LayerRow row) {
    const auto [at, isNew] =
        layers_.try_emplace(row.path, static_cast<std::int64_t>(layers_.size()));
    if (!isNew) return at->second;
    row.id = at->second;
    HW_TRY(session.insert(row));
    return row.id;
}

Result<std::int64_t> CommonRows::sourceFrame(SessionWriter& session, SourceFrameRow row) {
    const auto [at, isNew] = frames_.try_emplace({row.file, row.function, row.line},
                                                 static_cast<std::int64_t>(frames_.size()));
    row.id = at->second;
    if (isNew) HW_TRY(session.insert(row));
    return row.id;
}

Result<std::int64_t> CommonRows::stack(SessionWriter& session, StackRow row) {
    const auto [at, isNew] = stacks_.try_emplace({row.parent.value_or(-1), row.frame},
                                                 static_cast<std::int64_t>(stacks_.size()));
    row.id = at->second;
    if (isNew) HW_TRY(session.insert(row));
    return row.id;
}

}  // namespace hw::core
