// SPDX-License-Identifier: MIT
// How a command line tells an error: on stderr for people, as JSON for scripts.
#pragma once

#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/result.h"

namespace hw::core {

/// Names in it may be as long as a file.
inline std::string toldShort(const std::string& text) {
    constexpr std::size_t kMost = 4000;
    return text.size() <= kMost ? text : text.substr(0, kMost) + "…";
}

/// Lines after the first one are set off, so that none looks like one of ours.
inline std::string indented(std::string text) {
    for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 5)
        text.insert(at + 1, "    ");
    return text;
}

/// `{"code": the exit code, "what": …, "hint": …}`; a hint may be empty.
inline nlohmann::ordered_json errorJson(const Error& error) {
    return {{"code", static_cast<int>(error.code)},
            {"what", toldShort(error.what)},
            {"hint", toldShort(error.hint)}};
}

/// Prints `highwater: error: …` and `hint: …` to stderr; returns the exit code.
inline int printError(const Error& error) {
    std::cerr << "highwater: error: " << indented(toldShort(error.what)) << '\n';
    if (!error.hint.empty()) std::cerr << "hint: " << indented(toldShort(error.hint)) << '\n';
    return static_cast<int>(error.code);
}

}  // namespace hw::core
