// SPDX-License-Identifier: MIT
#include "core/import/nsight_names.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace hw::core {
namespace {

// Of the exporter's copy kinds, as Kineto says them.
constexpr std::array<const char*, 14> kCopies{"",     "HtoD",     "DtoH",     "HtoA",    "AtoH",
                                              "AtoA", "AtoD",     "DtoA",     "DtoD",    "HtoH",
                                              "PtoP", "UVM HtoD", "UVM DtoH", "UVM DtoD"};
constexpr std::array<const char*, 8> kKinds{"Pageable",       "Pinned",  "Device",
                                            "Array",          "Managed", "Device Static",
                                            "Managed Static", "Unknown"};

std::string lowered(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
}

}  // namespace

std::set<std::string> nsightColumns(const TableFile& file, const std::string& table) {
    std::set<std::string> columns;
    for (const TableColumn& column : readable(file.columns(table))) columns.insert(column.name);
    return columns;
}

void visitNsight(const TableFile& file, const std::string& table,
                 const std::vector<std::string>& columns, const std::string& order,
                 const TableVisitor& visit) {
    const std::set<std::string> there = nsightColumns(file, table);
    if (there.empty()) return;
    if (!there.contains(order)) {
        if (order != "start") return;
        throw std::invalid_argument(table + " has no column " + order);
    }
    std::vector<std::string> asked;
    for (const std::string& column : columns)
        asked.push_back(there.contains(column) ? column : std::string());
    if (const Status read = file.visit(table, asked, {order}, visit); !read)
        throw std::invalid_argument(read.error().what);
}

NsightNames::NsightNames(const TableFile& file) {
    visitNsight(file, "StringIds", {"id", "value"}, "id",
                [this](const TableRow& row) { texts_.emplace(row.integer(0), row.text(1)); });
    readOperations(file);
    readKinds(file);
}

void NsightNames::readOperations(const TableFile& file) {
    visitNsight(file, "ENUM_CUDA_DEV_MEM_EVENT_OPER", {"id", "name"}, "id",
                [this](const TableRow& row) {
                    const std::string name = lowered(row.text(1));
                    const auto says = [&](const char* word) {
                        return name.find(word) != std::string::npos;
                    };
                    if (says("dealloc") || says("free") || says("release"))
                        frees_.insert(row.integer(0));
                    else if (says("alloc"))
                        allocates_.insert(row.integer(0));
                });
    if (!allocates_.empty() && !frees_.empty()) return;
    bool fromZero = false;
    visitNsight(file, kNsightMemory, {"memoryOperationType"}, "start",
                [&](const TableRow& row) { fromZero = fromZero || row.integer(0) == 0; });
    allocates_ = {fromZero ? 0 : 1}, frees_ = {fromZero ? 1 : 2};
}

void NsightNames::readKinds(const TableFile& file) {
    visitNsight(file, "ENUM_CUDA_MEM_KIND", {"id", "label"}, "id", [this](const TableRow& row) {
        kinds_.emplace(row.integer(0), row.text(1));
        const std::string label = lowered(row.text(1));
        if (label == "pageable" || label == "pinned") host_.insert(row.integer(0));
    });
    if (!kinds_.empty()) return;
    // CUPTI's kinds begin with 1, as its operations do.
    const std::int64_t first = allocates_.contains(0) ? 0 : 1;
    for (std::size_t i = 0; i < kKinds.size(); ++i)
        kinds_.emplace(first + static_cast<std::int64_t>(i), kKinds[i]);
    host_ = {first, first + 1};
}

NsightNames::Operation NsightNames::operation(std::int64_t type) const {
    if (allocates_.contains(type)) return Operation::Allocate;
    return frees_.contains(type) ? Operation::Free : Operation::Other;
}

const std::string& NsightNames::text(std::int64_t id) const {
    static const std::string kNone;
    const auto at = texts_.find(id);
    return at == texts_.end() ? kNone : at->second;
}

std::string NsightNames::kind(std::int64_t id) const {
    const auto at = kinds_.find(id);
    return at == kinds_.end() || at->second.empty() ? "Unknown" : at->second;
}

std::string NsightNames::copy(std::int64_t copyKind, std::int64_t from, std::int64_t to) const {
    const bool known = copyKind > 0 && copyKind < static_cast<std::int64_t>(kCopies.size());
    const std::string way =
        known ? std::string(" ") + kCopies[static_cast<std::size_t>(copyKind)] : std::string();
    return "Memcpy" + way + " (" + kind(from) + " -> " + kind(to) + ")";
}

std::string NsightNames::set(std::int64_t kindOfMemory) const {
    return "Memset (" + kind(kindOfMemory) + ")";
}

}  // namespace hw::core
