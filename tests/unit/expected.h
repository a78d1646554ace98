// SPDX-License-Identifier: MIT
// The figures that lie beside a sample, and what a session says to those that are counts.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/unit/memory_rows.h"

namespace hw::test {

/// Of `simrd/unet.log.gz` what `simrd/unet.expected.json` holds.
inline nlohmann::json expectedOf(const std::string& file) {
    const std::filesystem::path path(file);
    const std::string name = path.filename().string();
    std::ifstream expected(path.parent_path() /
                           (name.substr(0, name.find('.')) + ".expected.json"));
    return nlohmann::json::parse(expected);
}

/// Asks for each figure that has a query.
inline void expectFigures(const core::Session& session, const nlohmann::json& expected,
                          std::initializer_list<std::pair<const char*, const char*>> queries) {
    int asked = 0;
    for (const auto& [name, query] : queries) {
        if (!expected.contains(name)) continue;
        EXPECT_EQ(figure(session, query), expected[name].get<std::int64_t>()) << name;
        ++asked;
    }
    EXPECT_GT(asked, 0);
}

}  // namespace hw::test
