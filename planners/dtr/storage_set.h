// SPDX-License-Identifier: MIT
// Sets of storages that are cheap to unite.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/graph/indices.h"

namespace hw::planners {

/// The first `count` of what lies there; valid as long as that stays.
template <typename Item>
class Items {
public:
    Items(const Item* first, std::size_t count) : first_(first), count_(count) {}
    Items(const std::vector<Item>& all) : Items(all.data(), all.size()) {}

    const Item* begin() const { return first_; }
    const Item* end() const { return first_ + count_; }
    std::size_t size() const { return count_; }
    const Item& operator[](std::size_t i) const { return first_[i]; }
    Items first(std::size_t count) const { return {first_, count}; }
    Items from(std::size_t start) const { return {first_ + start, count_ - start}; }

private:
    const Item* first_;
    std::size_t count_;
};

/// Of bits that are not all 0.
inline int lowestBit(std::uint64_t bits) {
    return __builtin_ctzll(bits);
}
inline int highestBit(std::uint64_t bits) {
    return 63 - __builtin_clzll(bits);
}

/// Words of 64 storages in increasing order, empty ones left out: storages that belong together
/// come into being at about the same time, so a set of thousands is a few dozen words.
class StorageSet {
public:
    struct Word {
        std::int32_t index = 0;
        std::uint64_t bits = 0;
    };

    bool empty() const { return words_.empty(); }
    void clear() { words_.clear(); }

    bool contains(core::StorageIndex s) const {
        const auto at = find(s >> 6);
        return at != words_.end() && at->index == s >> 6 && (at->bits & bit(s)) != 0;
    }

    /// False when it is in already.
    bool insert(core::StorageIndex s) {
        const auto at = words_.begin() + (find(s >> 6) - words_.begin());
        if (at == words_.end() || at->index != s >> 6) {
            words_.insert(at, {s >> 6, bit(s)});
            return true;
        }
        const bool isNew = (at->bits & bit(s)) == 0;
        at->bits |= bit(s);
        return isNew;
    }

    /// `word` must not lie before the last one.
    void append(const Word& word) {
        if (!words_.empty() && words_.back().index == word.index)
            words_.back().bits |= word.bits;
        else
            words_.push_back(word);
    }

    void erase(core::StorageIndex s) {
        const auto at = words_.begin() + (find(s >> 6) - words_.begin());
        if (at == words_.end() || at->index != s >> 6) return;
        at->bits &= ~bit(s);
        if (at->bits == 0) words_.erase(at);
    }

    /// In increasing order.
    template <typename Visit>
    void forEach(Visit visit) const {
        for (const Word& word : words_) forEachBit(word, visit);
    }

    /// Adds all of `other`; calls `added` for each that was not in, in no particular order.
    template <typename Added>
    void unite(const StorageSet& other, Added added) {
        std::size_t mine = words_.size();
        words_.resize(mine + missingWords(other));
        std::size_t to = words_.size();
        for (std::size_t theirs = other.words_.size(); theirs > 0;) {
            const Word& next = other.words_[theirs - 1];
            if (mine > 0 && words_[mine - 1].index > next.index) {
                words_[--to] = words_[--mine];
                continue;
            }
            const bool shared = mine > 0 && words_[mine - 1].index == next.index;
            const std::uint64_t known = shared ? words_[--mine].bits : 0;
            words_[--to] = {next.index, known | next.bits};
            forEachBit({next.index, next.bits & ~known}, added);
            --theirs;
        }
    }

private:
    friend class StorageBitmap;

    static std::uint64_t bit(core::StorageIndex s) { return std::uint64_t{1} << (s & 63); }
    template <typename Visit>
    static void forEachBit(const Word& word, Visit& visit) {
        for (std::uint64_t bits = word.bits; bits != 0; bits &= bits - 1)
            visit(word.index * 64 + lowestBit(bits));
    }
    std::vector<Word>::const_iterator find(std::int32_t index) const {
        return std::lower_bound(words_.begin(), words_.end(), index,
                                [](const Word& word, std::int32_t i) { return word.index < i; });
    }
    std::size_t missingWords(const StorageSet& other) const {
        std::size_t mine = 0, missing = 0;
        for (const Word& word : other.words_) {
            while (mine < words_.size() && words_[mine].index < word.index) ++mine;
            if (mine == words_.size() || words_[mine].index != word.index) ++missing;
        }
        return missing;
    }

    std::vector<Word> words_;
};

/// One bit for every storage of the graph, to collect a set in and to mask words with.
class StorageBitmap {
public:
    explicit StorageBitmap(std::size_t storages, bool value = false)
        : words_((storages + 63) / 64, value ? ~std::uint64_t{0} : 0) {
        reset();
    }

    /// For more storages; `value` as at first.
    void resize(std::size_t storages, bool value = false) {
        words_.resize((storages + 63) / 64, value ? ~std::uint64_t{0} : 0);
        if (untouched()) reset();
    }

    std::uint64_t operator[](std::int32_t index) const { return words_[index]; }
    bool contains(core::StorageIndex s) const { return (words_[s >> 6] & StorageSet::bit(s)) != 0; }
    void set(core::StorageIndex s) { add(s >> 6, StorageSet::bit(s)); }
    void clear(core::StorageIndex s) { words_[s >> 6] &= ~StorageSet::bit(s); }
    void add(std::int32_t index, std::uint64_t bits) {
        words_[index] |= bits;
        first_ = std::min(first_, index);
        last_ = std::max(last_, index);
    }

    /// Words between which all lies that was added since the last takeRange(), drain() or moveTo().
    std::int32_t first() const { return first_; }
    std::int32_t last() const { return last_; }
    bool untouched() const { return last_ < 0; }
    std::pair<std::int32_t, std::int32_t> takeRange() {
        const std::pair range{first_, last_};
        reset();
        return range;
    }

    /// Calls visit(index, bits) for every word that is not empty, in increasing order, and empties
    /// it. Everything must have been added since the last such call.
    template <typename Visit>
    void drain(Visit visit) {
        const auto [first, last] = takeRange();
        for (std::int32_t index = first; index <= last; ++index)
            if (words_[index] != 0) visit(index, std::exchange(words_[index], 0));
    }
    /// Replaces `set` by the members and empties the bitmap, by the same rule.
    void moveTo(StorageSet& set) {
        set.words_.clear();
        drain([&](std::int32_t index, std::uint64_t bits) { set.words_.push_back({index, bits}); });
    }

private:
    void reset() { first_ = static_cast<std::int32_t>(words_.size()), last_ = -1; }

    std::vector<std::uint64_t> words_;
    std::int32_t first_ = 0, last_ = -1;
};

}  // namespace hw::planners
