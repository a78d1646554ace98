// SPDX-License-Identifier: MIT
// Rules by which a user sorts the storages of a session into categories, again and again: they
// always start from the categories as recorded.
//
// A rules file is a JSON array; for each storage the first rule that fits decides, without one it
// keeps what was recorded. A rule is an object with "set" (the category) and any of
//   "category" "layer" "op" "phase" "device"   patterns with * and ? ("op": the one that made it)
//   "min_bytes" "max_bytes"                    whole numbers
// for example [{"set": "input", "op": "aten::embedding", "layer": "encoder.*"}].
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/session/session_writer.h"

namespace hw::core {

struct CategoryRule {
    Category set = Category::Unknown;
    std::map<std::string, std::string> patterns;  // by field
    std::optional<std::int64_t> minBytes, maxBytes;
};

/// Errors: BadInput naming the rule and what is wrong with it.
Result<std::vector<CategoryRule>> parseCategoryRules(const std::string& text);

struct CategoryChange {
    std::int64_t storages = 0;  // whose category is another one now
    Bytes bytes;
};

/// Applies the rules to all storages, in one transaction; no rules: back to what was recorded. The
/// session keeps `text` as its rules. Changes by "FROM -> TO". Errors: BadInput.
Result<std::map<std::string, CategoryChange>> applyCategoryRules(
    SessionWriter& session, const std::vector<CategoryRule>& rules, const std::string& text);

/// The text that was applied last; empty when there was none.
Result<std::string> storedCategoryRules(const Session& session);

}  // namespace hw::core
