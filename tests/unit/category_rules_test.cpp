// SPDX-License-Identifier: MIT
#include "core/session/category_rules.h"

#include <gtest/gtest.h>

#include "tests/unit/step_rows.h"

namespace hw::core {
namespace {

std::vector<Category> categories(const Session& session) {
    const auto graph = loadGraph(session, 0);
    EXPECT_TRUE(graph);
    std::vector<Category> found;
    for (const Storage& storage : graph->storages) found.push_back(storage.category);
    return found;
}

TEST(CategoryRules, AreAppliedAgainFromWhatWasRecorded) {
    SessionWriter session = SessionWriter::inMemory();
    ASSERT_TRUE(test::writeSmallStep(session, 0));
    const auto apply = [&](const std::string& text) {
        const auto rules = parseCategoryRules(text);
        EXPECT_TRUE(rules) << rules.error().what;
        auto changes = applyCategoryRules(session, *rules, text);
        EXPECT_TRUE(changes) << changes.error().what;
        EXPECT_EQ(*storedCategoryRules(session), text);
        return *changes;
    };
    using enum Category;
    auto changes = apply(R"([{"set": "activation", "op": "aten::m*", "min_bytes": 100},
                             {"set": "input", "op": "", "device": "cpu"}])");
    EXPECT_EQ(categories(session), (std::vector{Input, Activation, Unknown}));
    EXPECT_EQ(changes["unknown -> activation"].storages, 1);
    EXPECT_EQ(changes["unknown -> activation"].bytes, Bytes(200));
    changes = apply(R"([{"set": "gradient", "category": "unknown", "phase": "forward"}])");
    EXPECT_EQ(categories(session), (std::vector{Unknown, Gradient, Gradient}));
    EXPECT_EQ(changes.size(), 3u);
    apply("[]");
    EXPECT_EQ(categories(session), (std::vector{Unknown, Unknown, Unknown}));
}

TEST(CategoryRules, SayWhatIsWrong) {
    for (const auto& [text, what] :
         {std::pair{"{}", "no JSON array"},
          {"[", "no JSON array"},
          {"[1]", "rule 1 is no object"},
          {R"([{"op": "x"}])", "sets no category"},
          {R"([{"set": "input"}, {"set": "weights"}])", "rule 2 sets the unknown category"},
          {R"([{"set": "input", "opp": "x"}])", "'opp'"},
          {R"([{"set": "input", "min_bytes": "x"}])", "'min_bytes'"}}) {
        const auto rules = parseCategoryRules(text);
        ASSERT_FALSE(rules) << text;
        EXPECT_EQ(rules.error().code, ErrorCode::BadInput);
        EXPECT_NE(rules.error().what.find(what), std::string::npos) << rules.error().what;
    }
}

}  // namespace
}  // namespace hw::core
