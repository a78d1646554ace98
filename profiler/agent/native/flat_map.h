// SPDX-License-Identifier: MIT
// A hash table from addresses to values, without a node an entry: open addressing, linear probing,
// deletion that closes the hole.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace hw::profiler::native {

template <typename Key, typename Value>
class FlatMap {
public:
    /// Null: it is not there. Valid until something is inserted or erased.
    const Value* find(Key* key) const {
        if (slots_.empty()) return nullptr;
        const Slot& slot = slots_[slotOf(key)];
        return slot.key == key ? &slot.value : nullptr;
    }
    /// In the place of the key's value, where it has one.
    void set(Key* key, Value value) {
        if (2 * (used_ + 1) > slots_.size()) grow();
        Slot& slot = slots_[slotOf(key)];
        if (slot.key == nullptr) ++used_;
        slot.key = key;
        slot.value = std::move(value);
    }
    /// The key is there.
    Value take(Key* key) {
        std::size_t hole = slotOf(key);
        const std::size_t mask = slots_.size() - 1;
        Value removed = std::move(slots_[hole].value);
        for (std::size_t next = (hole + 1) & mask; slots_[next].key != nullptr;
             next = (next + 1) & mask) {
            const std::size_t home = homeOf(slots_[next].key);
            if (((next - home) & mask) < ((next - hole) & mask)) continue;
            slots_[hole] = std::move(slots_[next]);
            hole = next;
        }
        slots_[hole] = Slot();
        --used_;
        return removed;
    }
    /// Whether it was there.
    bool erase(Key* key) {
        if (find(key) == nullptr) return false;
        take(key);
        return true;
    }
    /// Its room stays.
    void clear() {
        if (used_ == 0) return;
        for (Slot& slot : slots_) slot = Slot();
        used_ = 0;
    }
    template <typename Visit>
    void each(const Visit& visit) const {
        for (const Slot& slot : slots_)
            if (slot.key != nullptr) visit(slot.key, slot.value);
    }

private:
    struct Slot {
        Key* key = nullptr;
        Value value{};
    };

    std::size_t homeOf(const Key* key) const {
        const auto address = reinterpret_cast<std::uintptr_t>(key);
        return ((address >> 4) * 0x9e3779b97f4a7c15ull >> 32) & (slots_.size() - 1);
    }
    /// Of the key, or where it would go.
    std::size_t slotOf(const Key* key) const {
        std::size_t slot = homeOf(key);
        while (slots_[slot].key != nullptr && slots_[slot].key != key)
            slot = (slot + 1) & (slots_.size() - 1);
        return slot;
    }
    void grow() {
        std::vector<Slot> before(slots_.empty() ? 128 : 2 * slots_.size());
        std::swap(before, slots_);
        for (Slot& slot : before)
            if (slot.key != nullptr) slots_[slotOf(slot.key)] = std::move(slot);
    }

    std::vector<Slot> slots_;  // a power of two of them, at most half in use
    std::size_t used_ = 0;
};

}  // namespace hw::profiler::native
