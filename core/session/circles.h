// SPDX-License-Identifier: MIT
// Parents in a file that may be damaged. Private to core/session.
#pragma once

#include <sqlite3.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/session/database.h"

namespace hw::core {

/// Of items with parents (kept by position; none: it has none), one from which parents lead back to
/// itself; none where all lead to an end. Linear in the items.
inline std::optional<std::size_t> findCircle(
    const std::vector<std::optional<std::size_t>>& parents) {
    std::vector<std::size_t> seenFrom(parents.size(), parents.size());  // the walk that saw it
    for (std::size_t start = 0; start < parents.size(); ++start)
        for (std::optional<std::size_t> at = start; at; at = parents[*at]) {
            if (seenFrom[*at] == start) return at;
            if (seenFrom[*at] != parents.size()) break;  // known to lead to an end
            seenFrom[*at] = start;
        }
    return std::nullopt;
}

/// Of rows with ids and the ids of their parents: throws DatabaseError where these lead in circles.
/// `what`: the rows, in words.
template <class Row, class IdOf, class ParentOf>
void requireNoCircle(const std::vector<Row>& rows, const char* what, const IdOf& idOf,
                     const ParentOf& parentOf) {
    std::unordered_map<std::int64_t, std::size_t> positions;
    for (std::size_t i = 0; i < rows.size(); ++i) positions[idOf(rows[i])] = i;
    std::vector<std::optional<std::size_t>> parents(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::optional<std::int64_t> parent = parentOf(rows[i]);
        const auto at = parent ? positions.find(*parent) : positions.end();
        if (at != positions.end()) parents[i] = at->second;
    }
    if (findCircle(parents))
        throw DatabaseError{SQLITE_CORRUPT, std::string(what) + " lead in a circle"};
}

}  // namespace hw::core
