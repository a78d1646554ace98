// SPDX-License-Identifier: MIT
#include "core/session/damage.h"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace hw::core {
namespace {

// The tables without which a step is not whole.
constexpr std::array kStepTables{"ops",       "storages",   "tensors",
                                 "op_inputs", "op_outputs", "op_writes"};

/// Rows up to the first one that cannot be read, and whether there was one.
struct Scan {
    std::int64_t rows = 0;
    std::int64_t lastSeq = -1;  // of ops
    bool whole = false;
};

Scan scan(Database& database, const std::string& table) {
    Scan result;
    const bool ops = table == "ops";
    try {
        // No index: the rows themselves, in the order in which they were written.
        Statement from(database, ops ? "SELECT seq, args FROM ops NOT INDEXED ORDER BY id"
                                     : "SELECT * FROM " + table);
        while (from.step()) {
            ++result.rows;
            if (ops) result.lastSeq = from.integer(0);
        }
        result.whole = true;
    } catch (const DatabaseError&) {
        // result.whole stays false
    }
    return result;
}

std::string stepsLost(Database& database, std::int64_t lastSeq) {
    std::int64_t count = 0, first = -1;
    try {
        Statement from(database, "SELECT id, end_seq FROM steps NOT INDEXED ORDER BY id");
        for (; from.step(); ++count)
            if (first < 0 && from.integer(1) > lastSeq + 1) first = from.integer(0);
    } catch (const DatabaseError&) {
        return "the list of steps is lost; ";
    }
    if (first < 0) return {};
    return "of " + std::to_string(count) + " steps those from " + std::to_string(first) +
           " on are lost; ";
}

std::string nameLost(Database& database) {
    std::string text, tables;
    for (const char* table : kStepTables) {
        const Scan found = scan(database, table);
        if (found.whole) continue;
        tables += (tables.empty() ? "" : ", ") + std::string(table) + " after row " +
                  std::to_string(found.rows);
        if (std::string_view(table) == "ops") text = stepsLost(database, found.lastSeq);
    }
    if (tables.empty()) return {};
    return ": " + text + "unreadable: " + tables;
}

bool aboutIndex(const std::string& message) {
    return message.find("missing from index") != std::string::npos ||
           message.find("entries in index") != std::string::npos ||
           message.find("non-unique entry in index") != std::string::npos;
}

}  // namespace

Damage findDamage(Database& database) {
    Damage damage;
    try {
        Statement check(database, "PRAGMA integrity_check(100)");
        while (check.step()) {
            const std::string message = check.text(0);
            if (message == "ok") return damage;
            (aboutIndex(message) ? damage.inIndexes : damage.inTables) = true;
        }
    } catch (const DatabaseError&) {
        damage.inTables = true;
    }
    if (damage.inTables) damage.lost = nameLost(database);
    return damage;
}

}  // namespace hw::core
