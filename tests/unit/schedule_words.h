// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace hw::test {

/// As text: a word an action.
inline std::vector<std::string> told(const core::Schedule& schedule) {
    std::vector<std::string> words;
    for (const core::Action& action : schedule) {
        std::string word(1, traitsOf(action.kind).code);
        word += std::to_string(action.target);
        for (const std::int32_t output : action.outputs) word += "," + std::to_string(output);
        words.push_back(std::move(word));
    }
    return words;
}

}  // namespace hw::test
