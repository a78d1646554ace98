// SPDX-License-Identifier: MIT
// What came to DTR in a program that trains, and what it evicted, in order: so that the simulation
// can be given the same and be seen to evict the same (planners/dtr/live_log.h, which says what the
// lines are). Written only where HIGHWATER_DTR_LOG names a file that is not there yet.
#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace hw::live::runtime {

class DecisionLog {
public:
    /// Null: there is no log.
    static std::unique_ptr<DecisionLog> wanted(int heuristic);
    explicit DecisionLog(const std::string& path) : file_(path) {}

    /// A line: a word and what belongs to it.
    template <typename... Items>
    void line(const char* word, const Items&... items) {
        file_ << word;
        (put(items), ...);
        file_ << '\n';
    }
    void flush() { file_.flush(); }

    /// The storages have other numbers.
    void renumber() { told_.clear(); }
    /// Once of each storage: the program refers to it no longer.
    bool tellsUnwanted(std::uint32_t storage) { return tell(storage, kUnwanted); }
    /// Once each time that its bytes have gone: no reference is left.
    bool tellsLost(std::uint32_t storage) { return tell(storage, kLost); }
    void filled(std::uint32_t storage) {
        if (storage < told_.size()) told_[storage] &= static_cast<std::uint8_t>(~kLost);
    }

private:
    static constexpr std::uint8_t kUnwanted = 1, kLost = 2;

    template <typename Item>
    void put(const Item& item) {
        file_ << ' ' << item;
    }
    template <typename Item>
    void put(const std::vector<Item>& items) {
        file_ << ' ' << items.size();
        for (const Item& item : items) file_ << ' ' << item;
    }
    bool tell(std::uint32_t storage, std::uint8_t what) {
        if (storage >= told_.size()) told_.resize(storage + 1, 0);
        if ((told_[storage] & what) != 0) return false;
        told_[storage] |= what;
        return true;
    }

    std::ofstream file_;
    std::vector<std::uint8_t> told_;  // of each storage
};

}  // namespace hw::live::runtime
