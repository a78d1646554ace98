// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace hw::core {

/// Of what comes in order, each once.
template <class List, class Item>
void pushUnlessLast(List& list, Item item) {
    if (list.empty() || list.back() != item) list.push_back(item);
}

/// Lists of integers, one after the other in one array.
class IndexLists {
public:
    /// (list, what it holds)
    using Entry = std::pair<std::int32_t, std::int32_t>;

    IndexLists() = default;
    /// So many lists; each holds its entries in the order in which they are given.
    IndexLists(std::size_t lists, const std::vector<Entry>& entries)
        : begin_(lists + 1, 0), data_(entries.size()) {
        for (const auto& [list, item] : entries) ++begin_[list + 1];
        for (std::size_t i = 0; i < lists; ++i) begin_[i + 1] += begin_[i];
        std::vector<std::size_t> next(begin_.begin(), begin_.end() - 1);
        for (const auto& [list, item] : entries) data_[next[list]++] = item;
    }

    std::span<const std::int32_t> operator[](std::size_t i) const {
        return {data_.data() + begin_[i], data_.data() + begin_[i + 1]};
    }
    std::size_t size() const { return begin_.size() - 1; }
    void append(std::span<const std::int32_t> list) {
        data_.insert(data_.end(), list.begin(), list.end());
        begin_.push_back(data_.size());
    }

private:
    std::vector<std::size_t> begin_{0};
    std::vector<std::int32_t> data_;
};

}  // namespace hw::core
