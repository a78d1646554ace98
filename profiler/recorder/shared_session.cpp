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

}  // namespace hw::profiler
