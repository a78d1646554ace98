// SPDX-License-Identifier: MIT
// How a command line tells an error: on stderr for people, as JSON for scripts.
#pragma once

#include <iostream>
#include <nlohmann/json.hpp>

#include "core/base/result.h"

namespace hw::core {

/// `{"code": the exit code, "what": …, "hint": …}`; a hint may be empty.
inline nlohmann::ordered_json errorJson(const Error& error) {
    return {{"code", static_cast<int>(error.code)}, {"what", error.what}, {"hint", error.hint}};
}

/// Prints `highwater: error: …` and `hint: …` to stderr; returns the exit code.
inline int printError(const Error& error) {
    std::cerr << "highwater: error: " << error.what << '\n';
    if (!error.hint.empty()) std::cerr << "hint: " << error.hint << '\n';
    return static_cast<int>(error.code);
}

}  // namespace hw::core
