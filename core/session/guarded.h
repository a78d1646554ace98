// SPDX-License-Identifier: MIT
// The border of core/session. Private to it.
#pragma once

#include <string>
#include <type_traits>

#include "core/base/result.h"
#include "core/session/database.h"
#include "core/session/session_error.h"

namespace hw::core {

// Runs `work` and turns SQLite's exceptions into the Error that `tell` makes; none crosses this
// border.
template <class Work, class Tell>
auto guarded(Work work, Tell tell) -> Result<decltype(work())> {
    try {
        if constexpr (std::is_void_v<decltype(work())>) {
            work();
            return {};
        } else {
            return work();
        }
    } catch (const DatabaseError& error) {
        return tell(error);
    }
}

template <class Work>
auto guarded(const std::string& path, const char* doing, Work work) {
    return guarded(work,
                   [&](const DatabaseError& error) { return sessionError(path, doing, error); });
}

}  // namespace hw::core
