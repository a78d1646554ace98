// SPDX-License-Identifier: MIT
#include "profiler/recorder/shared_session.h"

namespace hw::profiler {

core::Result<SharedSession::Member> SharedSession::enter(core::ProcessRow row) {
    if (!session_) {
        auto created = core::SessionWriter::create(path_);
        if (!created) return created.error();
        session_.emplace(std::move(*created));
    }
    HW_TRY(session_->insert(row));
    const std::int64_t index = processes_++;
    return Member{index + 1, index * core::kIdsOfProcess};
}

core::Result<std::int64_t> SharedSession::layer(core::LayerRow row) {
    const auto [at, isNew] =
        layers_.try_emplace(row.path, static_cast<std::int64_t>(layers_.size()));
    if (!isNew) return at->second;
    row.id = at->second;
    HW_TRY(session_->insert(row));
    return row.id;
}

core::Result<std::int64_t> SharedSession::sourceFrame(core::SourceFrameRow row) {
    const auto [at, isNew] = frames_.try_emplace({row.file, row.function, row.line},
                                                 static_cast<std::int64_t>(frames_.size()));
    row.id = at->second;
    if (isNew) HW_TRY(session_->insert(row));
    return row.id;
}

core::Result<std::int64_t> SharedSession::stack(core::StackRow row) {
    const auto [at, isNew] = stacks_.try_emplace({row.parent.value_or(-1), row.frame},
                                                 static_cast<std::int64_t>(stacks_.size()));
    row.id = at->second;
    if (isNew) HW_TRY(session_->insert(row));
    return row.id;
}

}  // namespace hw::profiler
