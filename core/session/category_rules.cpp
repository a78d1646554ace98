// SPDX-License-Identifier: MIT
#include "core/session/category_rules.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/session/access.h"
#include "core/session/guarded.h"
#include "core/session/step_rows.h"

namespace hw::core {
namespace {

using nlohmann::json;

constexpr const char* kMeta = "category_rules";
constexpr std::array<const char*, 5> kFields{"category", "layer", "op", "phase", "device"};

Error wrong(std::size_t rule, const std::string& what) {
    return badInput("category rule " + std::to_string(rule + 1) + " " + what,
                    "a rule is {\"set\": CATEGORY} with any of category, layer, op, phase, device "
                    "(patterns), min_bytes, max_bytes");
}

Result<CategoryRule> parseRule(const json& item, std::size_t index) {
    if (!item.is_object()) return wrong(index, "is no object");
    CategoryRule rule;
    bool set = false;
    for (const auto& [key, value] : item.items()) {
        const bool field = std::find(kFields.begin(), kFields.end(), key) != kFields.end();
        if (key == "set" && value.is_string()) {
            const auto name = value.get<std::string>();
            rule.set = categoryFromName(name);
            if (categoryName(rule.set) != name)
                return wrong(index, "sets the unknown category '" + name + "'");
            set = true;
        } else if (field && value.is_string()) {
            rule.patterns[key] = value.get<std::string>();
        } else if (key == "min_bytes" && value.is_number_integer()) {
            rule.minBytes = value.get<std::int64_t>();
        } else if (key == "max_bytes" && value.is_number_integer()) {
            rule.maxBytes = value.get<std::int64_t>();
        } else {
            return wrong(index, "has an unknown or malformed field '" + key + "'");
        }
    }
    if (!set) return wrong(index, "sets no category");
    return rule;
}

bool fits(const CategoryRule& rule, const std::map<std::string, std::string>& storage,
          std::int64_t bytes) {
    if (rule.minBytes && bytes < *rule.minBytes) return false;
    if (rule.maxBytes && bytes > *rule.maxBytes) return false;
    return std::all_of(rule.patterns.begin(), rule.patterns.end(), [&](const auto& pattern) {
        return fnmatch(pattern.second.c_str(), storage.at(pattern.first).c_str(), 0) == 0;
    });
}

}  // namespace

Result<std::vector<CategoryRule>> parseCategoryRules(const std::string& text) {
    const json document = json::parse(text, nullptr, false);
    if (!document.is_array())
        return badInput("the category rules are no JSON array",
                        "write, for example, [{\"set\": \"input\", \"op\": \"aten::embedding\"}]");
    std::vector<CategoryRule> rules;
    for (std::size_t i = 0; i < document.size(); ++i) {
        auto rule = parseRule(document[i], i);
        if (!rule) return rule.error();
        rules.push_back(std::move(*rule));
    }
    return rules;
}

Result<std::map<std::string, CategoryChange>> applyCategoryRules(
    SessionWriter& session, const std::vector<CategoryRule>& rules, const std::string& text) {
    struct Update {
        std::int64_t storage;
        std::string category;
    };
    std::map<std::string, CategoryChange> changes;
    std::vector<Update> updates;
    const Status done = guarded(session.path(), "applying category rules", [&] {
        Database& database = databaseOf(session);
        database.execute("BEGIN IMMEDIATE");
        unpackAllIntoTables(database);
        Statement from(
            database,
            "SELECT s.id, s.bytes, s.category, coalesce(s.recorded_category, s.category),"
            " l.path, o.name, o.phase, s.device FROM storages s"
            " LEFT JOIN ops o ON o.id = s.creator"
            " LEFT JOIN layers l ON l.id = coalesce(s.layer, o.layer) ORDER BY s.id");
        while (from.step()) {
            const std::map<std::string, std::string> storage{{"category", from.text(3)},
                                                             {"layer", from.text(4)},
                                                             {"op", from.text(5)},
                                                             {"phase", from.text(6)},
                                                             {"device", from.text(7)}};
            const std::int64_t bytes = from.integer(1);
            const auto rule = std::find_if(rules.begin(), rules.end(), [&](const auto& candidate) {
                return fits(candidate, storage, bytes);
            });
            const std::string now =
                rule == rules.end() ? storage.at("category") : std::string(categoryName(rule->set));
            if (now == from.text(2)) continue;
            updates.push_back({from.integer(0), now});
            CategoryChange& change = changes[from.text(2) + " -> " + now];
            ++change.storages;
            change.bytes += Bytes(bytes);
        }
        Statement write(database,
                        "UPDATE storages SET recorded_category = coalesce(recorded_category,"
                        " category), category = ?2 WHERE id = ?1");
        for (const Update& update : updates)
            write.bind(1, update.storage).bind(2, update.category).execute();
        Statement keep(database, "INSERT OR REPLACE INTO meta VALUES(?,?)");
        keep.bind(1, std::string_view(kMeta)).bind(2, text).execute();
        database.execute("COMMIT");
    });
    if (!done) return done.error();
    return changes;
}

Result<std::string> storedCategoryRules(const Session& session) {
    return session.meta(kMeta);
}

}  // namespace hw::core
