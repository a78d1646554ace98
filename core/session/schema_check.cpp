// SPDX-License-Identifier: MIT
#include "core/session/schema_check.h"

#include <vector>

namespace hw::core {
namespace {

std::string quoted(const std::string& name) {
    return "'" + name.substr(0, 60) + "'";
}

std::vector<std::string> namesOf(Database& database, const char* type) {
    std::vector<std::string> names;
    Statement from(database, "SELECT name FROM sqlite_master WHERE type = ?");
    for (from.bind(1, type); from.step();) names.push_back(from.text(0));
    return names;
}

}  // namespace

std::string foreignParts(Database& database) {
    Statement others(database,
                     "SELECT type, name FROM sqlite_master WHERE type NOT IN ('table', 'index')"
                     " UNION ALL SELECT 'virtual table', name FROM sqlite_master"
                     " WHERE type = 'table' AND (coalesce(rootpage, 0) = 0 OR sql IS NULL OR"
                     " sql NOT LIKE 'CREATE TABLE%') LIMIT 1");
    if (others.step()) return "the " + others.text(0) + " " + quoted(others.text(1));
    Statement conflict(database,
                       "SELECT name FROM sqlite_master WHERE sql LIKE '%conflict%' LIMIT 1");
    if (conflict.step()) return "a conflict clause in " + quoted(conflict.text(0));
    for (const std::string& table : namesOf(database, "table")) {
        Statement computed(database,
                           "SELECT name FROM pragma_table_xinfo(?) WHERE dflt_value LIKE '%(%'");
        if (computed.bind(1, table).step())
            return "the computed default of " + quoted(computed.text(0)) + " in the table " +
                   quoted(table);
        Statement columns(database, "SELECT name FROM pragma_table_xinfo(?) WHERE hidden > 0");
        if (columns.bind(1, table).step())
            return "the generated column " + quoted(columns.text(0)) + " of the table " +
                   quoted(table);
    }
    for (const std::string& index : namesOf(database, "index")) {
        Statement columns(database, "SELECT 1 FROM pragma_index_xinfo(?) WHERE cid = -2");
        if (columns.bind(1, index).step())
            return "the index " + quoted(index) + " on an expression";
    }
    Statement partial(database,
                      "SELECT name FROM sqlite_master WHERE type = 'index' AND"
                      " sql LIKE '%)%WHERE%' LIMIT 1");
    if (partial.step()) return "the partial index " + quoted(partial.text(0));
    return {};
}

}  // namespace hw::core
