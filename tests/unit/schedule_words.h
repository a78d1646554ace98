// SPDX-License-Identifier: MIT
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/memory/evaluate.h"
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

/// The same actions in another order, which take the same time. Whether any is elsewhere.
inline bool expectRearranged(const core::TrainingGraph& graph, const core::Schedule& before,
                             const core::Schedule& after) {
    const core::Evaluation judged = evaluate(graph, after);
    EXPECT_TRUE(judged.valid) << judged.why;
    EXPECT_EQ(judged.time, evaluate(graph, before).time);
    const auto was = told(before), is = told(after);
    EXPECT_TRUE(std::is_permutation(is.begin(), is.end(), was.begin(), was.end()));
    return is != was;
}

}  // namespace hw::test
