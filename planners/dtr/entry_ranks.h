// SPDX-License-Identifier: MIT
// Which storage of a pool came into it as the k-th of those that are there. In C++17, as frameworks
// ask for.
#pragma once

#include <algorithm>
#include <iterator>
#include <vector>

#include "core/graph/indices.h"

namespace hw::planners {

/// Entries lie in a row in their order, and a Fenwick tree over the row counts those that are still
/// there; a full row moves together.
class EntryRanks {
public:
    /// There are more storages.
    void resize(std::size_t storages) { place_.resize(storages); }
    void enter(core::StorageIndex s) {
        if (next_ == row_.size()) moveTogether();
        place_[s] = next_;
        row_[next_] = s;
        count(next_++, 1);
    }
    void leave(core::StorageIndex s) {
        row_[place_[s]] = core::kNone;
        count(place_[s], -1);
    }
    /// @param k less than how many are there
    core::StorageIndex operator[](std::size_t k) const {
        std::size_t before = 0;  // entries that the k-th comes after
        for (std::size_t step = row_.size(); step > 0; step /= 2)
            if (before + step < counts_.size() && counts_[before + step] <= static_cast<int>(k)) {
                before += step;
                k -= static_cast<std::size_t>(counts_[before]);
            }
        return row_[before];
    }

private:
    void count(std::size_t place, int change) {
        for (std::size_t i = place + 1; i < counts_.size(); i += i & (~i + 1)) counts_[i] += change;
    }
    void moveTogether() {
        std::vector<core::StorageIndex> there;
        std::copy_if(row_.begin(), row_.end(), std::back_inserter(there),
                     [](core::StorageIndex s) { return s != core::kNone; });
        std::size_t room = 64;  // a power of two
        while (room < 2 * there.size()) room *= 2;
        row_.assign(room, core::kNone);
        counts_.assign(room + 1, 0);
        next_ = 0;
        for (const core::StorageIndex s : there) enter(s);
    }

    std::vector<core::StorageIndex> row_;  // kNone: it has left
    std::vector<int> counts_;              // Fenwick's, of row_, from 1
    std::vector<std::size_t> place_;       // per storage, in row_
    std::size_t next_ = 0;
};

}  // namespace hw::planners
