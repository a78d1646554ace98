// SPDX-License-Identifier: MIT
#include "core/session/damage.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "core/session/session_error.h"

namespace hw::core {
namespace {

// The tables without which a step is not whole, and what is asked of them. No index: the rows
// themselves, in the order in which they were written.
constexpr std::array<std::pair<const char*, const char*>, 7> kStepTables{
    {{"ops", "SELECT seq, args FROM ops NOT INDEXED ORDER BY id"},
     {"storages", "SELECT * FROM storages"},
     {"tensors", "SELECT * FROM tensors"},
     {"op_inputs", "SELECT * FROM op_inputs"},
     {"op_outputs", "SELECT * FROM op_outputs"},
     {"op_writes", "SELECT * FROM op_writes"},
     {"packed_steps", "SELECT step, data FROM packed_steps"}}};

/// Rows up to the first one that cannot be read, and whether there was one.
struct Scan {
    std::vector<std::int64_t> firsts;  // of their columns
    bool whole = false;
};

Scan scan(Database& database, const char* sql) {
    Scan result;
    try {
        Statement from(database, sql);
        while (from.step()) result.firsts.push_back(from.integer(0));
        result.whole = true;
    } catch (const DatabaseError& error) {
        if (isLocked(error)) throw;  // else result.whole stays false
    }
    return result;
}

/// The steps whose ops are not among those that can be read.
std::string stepsLost(Database& database, std::int64_t lastSeq,
                      const std::vector<std::int64_t>& packed) {
    std::int64_t count = 0, first = -1;
    try {
        Statement from(database, "SELECT id, end_seq FROM steps NOT INDEXED ORDER BY id");
        for (; from.step(); ++count)
            if (first < 0 && from.integer(1) > lastSeq + 1 &&
                !std::binary_search(packed.begin(), packed.end(), from.integer(0)))
                first = from.integer(0);
    } catch (const DatabaseError&) {
        return "the list of steps is lost; ";
    }
    if (first < 0) return {};
    return "of " + std::to_string(count) + " steps those from " + std::to_string(first) +
           " on are lost; ";
}

// Older sessions lack the table.
bool lacksPackedSteps(Database& database) {
    try {
        return !database.hasTable("packed_steps");
    } catch (const DatabaseError&) {
        return false;
    }
}

std::string nameLost(Database& database) {
    std::string tables;
    Scan ops, packed;
    for (const auto& [table, sql] : kStepTables) {
        const std::string_view name = table;
        if (name == "packed_steps" && lacksPackedSteps(database)) {
            packed.whole = true;
            continue;
        }
        Scan found = scan(database, sql);
        if (!found.whole)
            tables += (tables.empty() ? "" : ", ") + std::string(name) + " after row " +
                      std::to_string(found.firsts.size());
        if (name == "ops") ops = std::move(found);
        if (name == "packed_steps") packed = std::move(found);
    }
    if (tables.empty()) return {};
    const std::int64_t lastSeq = ops.firsts.empty() ? -1 : ops.firsts.back();
    const bool all = ops.whole && packed.whole;
    return ": " + (all ? "" : stepsLost(database, lastSeq, packed.firsts)) +
           "unreadable: " + tables;
}

bool aboutIndex(const std::string& message) {
    return message.find("missing from index") != std::string::npos ||
           message.find("entries in index") != std::string::npos ||
           message.find("non-unique entry in index") != std::string::npos;
}

}  // namespace

bool isComplete(Database& database, const std::string& path) {
    std::error_code ignored;
    const auto size = std::filesystem::file_size(path, ignored);
    const auto expected =
        static_cast<std::uintmax_t>(database.pragma("page_count") * database.pragma("page_size"));
    return size >= expected || std::filesystem::exists(path + "-wal", ignored);
}

Damage findDamage(Database& database) {
    Damage damage;
    try {
        Statement check(database, "PRAGMA integrity_check(100)");
        while (check.step()) {
            const std::string message = check.text(0);
            if (message == "ok") return damage;
            (aboutIndex(message) ? damage.inIndexes : damage.inTables) = true;
        }
    } catch (const DatabaseError& error) {
        if (isLocked(error)) throw;
        damage.inTables = true;
    }
    if (damage.inTables) damage.lost = nameLost(database);
    return damage;
}

}  // namespace hw::core
