// SPDX-License-Identifier: MIT
// Ops whose storages are also read or written by code that no op shows. In C++17, see indices.h.
#pragma once

#include <string_view>

namespace hw::core {

inline bool beginsWith(std::string_view text, std::string_view begin) {
    return text.substr(0, begin.size()) == begin;
}

/// Goes on with its tensors after it has returned, and writes them without saying so.
inline bool isCollective(std::string_view op) {
    return beginsWith(op, "c10d::") || beginsWith(op, "_c10d_functional");
}

/// Returns when the collective that made its tensor is done.
inline bool waitsForCollective(std::string_view op) {
    return isCollective(op) && op.find("::wait_tensor") != std::string_view::npos;
}

/// Makes storages without filling them.
inline bool leavesEmpty(std::string_view op) {
    return beginsWith(op, "aten::empty") || beginsWith(op, "aten::new_empty");
}

}  // namespace hw::core
