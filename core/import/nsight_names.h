// SPDX-License-Identifier: MIT
// What the numbers in an export of Nsight Systems mean: names of kernels, kinds of memory, …
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/session/tables.h"

namespace hw::core {

inline constexpr const char* kNsightMemory = "CUDA_GPU_MEMORY_USAGE_EVENTS";

/// The value, or std::invalid_argument: what is wrong with the file is wrong input.
template <class T>
T readable(Result<T> result) {
    if (!result) throw std::invalid_argument(result.error().what);
    return std::move(*result);
}

/// The names of a table's columns; empty where there is no such table.
std::set<std::string> nsightColumns(const TableFile& file, const std::string& table);
/// Visits these columns of a table by `order`; those that it lacks read as NULL. Nothing where
/// there is no such table, or one of names without `order`. Throws std::invalid_argument where it
/// cannot be read, and where rows of time have no `start`.
void visitNsight(const TableFile& file, const std::string& table,
                 const std::vector<std::string>& columns, const std::string& order,
                 const TableVisitor& visit);

/// Read once from a file. Exports say in tables of their own (ENUM_…) what kinds and operations
/// mean; those that lack them have CUPTI's numbers, or the exporter's, which begin with 0.
class NsightNames {
public:
    enum class Operation : std::uint8_t { Allocate, Free, Other };

    explicit NsightNames(const TableFile& file);

    Operation operation(std::int64_t type) const;
    bool isHost(std::int64_t kind) const { return host_.contains(kind); }
    /// Of StringIds; empty where it is not there.
    const std::string& text(std::int64_t id) const;
    /// As Kineto names it: "Memcpy HtoD (Pinned -> Device)", "Memset (Device)".
    std::string copy(std::int64_t copyKind, std::int64_t from, std::int64_t to) const;
    std::string set(std::int64_t kind) const;

private:
    void readOperations(const TableFile& file);
    void readKinds(const TableFile& file);
    std::string kind(std::int64_t id) const;

    std::unordered_map<std::int64_t, std::string> texts_, kinds_;
    std::set<std::int64_t> allocates_, frees_, host_;
};

}  // namespace hw::core
