// SPDX-License-Identifier: MIT
// What DTR's runtime and its heuristics share: the state of every storage, the graph that the
// program has built so far, the clock and the counters.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/graph/indices.h"
#include "planners/dtr/storage_set.h"

namespace hw::planners {

enum Direction { Descendants, Ancestors };

/// For each storage, the storages that ops join to it in either direction, itself and constants
/// included, and how many tensors they are, each as often as an op joins it: the simulator counts
/// accesses by them. A cache line for a storage, for walks read little else.
class LinkTable {
public:
    explicit LinkTable(std::size_t storages) : links_(storages) {}
    void resize(std::size_t storages) { links_.resize(storages); }

    /// An op makes or writes a tensor of `output` from one of `input`.
    void add(core::StorageIndex input, core::StorageIndex output) {
        add(links_[input].entries[Descendants], output);
        add(links_[output].entries[Ancestors], input);
    }
    void prefetch(core::StorageIndex s) const { __builtin_prefetch(&links_[s]); }

    std::int64_t tensors(core::StorageIndex s, Direction to) const {
        return links_[s].entries[to].tensors;
    }
    std::int64_t tensors(core::StorageIndex s) const {
        return tensors(s, Ancestors) + tensors(s, Descendants);
    }
    /// In no particular order, no index twice; valid until the next add().
    Items<StorageSet::Word> words(core::StorageIndex s, Direction to) const {
        const Entry& entry = links_[s].entries[to];
        return {wordsOf(entry), entry.count};
    }
    template <typename Visit>
    void forEach(core::StorageIndex s, Direction to, Visit visit) const {
        for (const StorageSet::Word& word : words(s, to))
            for (std::uint64_t bits = word.bits; bits != 0; bits &= bits - 1)
                visit(word.index * 64 + lowestBit(bits));
    }
    /// The ancestors first; one that is both comes twice.
    template <typename Visit>
    void forEach(core::StorageIndex s, Visit visit) const {
        forEach(s, Ancestors, visit);
        forEach(s, Descendants, visit);
    }

private:
    struct Entry {
        StorageSet::Word only;                             // where there is one, as nearly always
        std::uint32_t first = 0, count = 0, capacity = 1;  // in words_, from two on
        std::int32_t tensors = 0;
    };
    struct alignas(64) Links {
        Entry entries[2];  // by Direction
    };

    void add(Entry& entry, core::StorageIndex other) {
        ++entry.tensors;
        const std::uint64_t bit = std::uint64_t{1} << (other & 63);
        StorageSet::Word* const words = wordsOf(entry);
        for (std::uint32_t i = entry.count; i-- > 0;) {  // the newest last: most often there
            if (words[i].index != other >> 6) continue;
            words[i].bits |= bit;
            return;
        }
        if (entry.count == entry.capacity) grow(entry);
        wordsOf(entry)[entry.count++] = {other >> 6, bit};
    }
    StorageSet::Word* wordsOf(Entry& entry) {
        return entry.capacity == 1 ? &entry.only : words_.data() + entry.first;
    }
    const StorageSet::Word* wordsOf(const Entry& entry) const {
        return entry.capacity == 1 ? &entry.only : words_.data() + entry.first;
    }
    void grow(Entry& entry) {
        const auto first = static_cast<std::uint32_t>(words_.size());
        words_.resize(words_.size() + 2 * entry.capacity);
        std::copy_n(wordsOf(entry), entry.count, words_.begin() + first);
        entry.first = first;
        entry.capacity *= 2;
    }

    std::vector<Links> links_;
    std::vector<StorageSet::Word> words_;
};

struct DtrStorage {
    std::int64_t compute = 0;     // ns of the ops that made the storage and its tensors so far
    std::int64_t size = 0;        // bytes
    std::int64_t lastAccess = 0;  // clock
    std::int32_t locks = 0;
    std::int32_t version = 0;
    bool material = false;
    bool everMaterial = false;
    bool pinned = false;
    bool deferred = false;  // pinned as long as others can go
    bool dead = false;      // released by the program
    bool gone = false;      // banished, or a constant freed for good: it never comes back
};

struct DtrState {
    explicit DtrState(std::size_t count) : storages(count), links(count) {}
    void resize(std::size_t count) {
        storages.resize(count);
        links.resize(count);
    }

    std::vector<DtrStorage> storages;
    LinkTable links;
    std::int64_t clock = 1;  // ns
    std::int64_t evals = 0, accesses = 0;
};

/// The evictable storages in the order in which they became so: a list inside two arrays, the ends
/// of which meet at 0. Beside it they lie in no order, so that some can be drawn.
class EvictionPool {
public:
    explicit EvictionPool(std::size_t storages) : next_{0}, previous_{0} { resize(storages); }
    void resize(std::size_t storages) {
        next_.resize(storages + 1);
        previous_.resize(storages + 1);
        place_.resize(storages);
    }
    void add(core::StorageIndex s) {
        const core::StorageIndex last = previous_[0];
        next_[last] = s + 1, previous_[s + 1] = last;
        next_[s + 1] = 0, previous_[0] = s + 1;
        place_[s] = drawn_.size();
        drawn_.push_back(s);
    }
    /// `s` must be in the pool.
    void remove(core::StorageIndex s) {
        next_[previous_[s + 1]] = next_[s + 1];
        previous_[next_[s + 1]] = previous_[s + 1];
        place_[drawn_.back()] = place_[s];
        drawn_[place_[s]] = drawn_.back();
        drawn_.pop_back();
    }
    core::StorageIndex first() const { return next_[0] - 1; }
    core::StorageIndex next(core::StorageIndex s) const { return next_[s + 1] - 1; }
    static constexpr core::StorageIndex end() { return core::kNone; }
    std::size_t size() const { return drawn_.size(); }
    /// In no order.
    core::StorageIndex operator[](std::size_t i) const { return drawn_[i]; }

private:
    std::vector<core::StorageIndex> next_, previous_;  // one further
    std::vector<core::StorageIndex> drawn_;
    std::vector<std::size_t> place_;  // in drawn_
};

}  // namespace hw::planners
