// SPDX-License-Identifier: MIT
// A hash table from addresses to objects, without a node an entry: open addressing, linear probing,
// deletion that closes the hole.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace hw::profiler::native {

template <typename Key, typename Value>
class FlatMap {
public:
    Value* find(Key* key) const {
        if (slots_.empty()) return nullptr;
        const Slot& slot = slots_[slotOf(key)];
        return slot.key == key ? slot.value.get() : nullptr;
    }
    /// The key is not there yet.
    Value& insert(Key* key, std::unique_ptr<Value> value) {
        if (2 * (used_ + 1) > slots_.size()) grow();
        Slot& slot = slots_[slotOf(key)];
        slot.key = key;
        slot.value = std::move(value);
        ++used_;
        return *slot.value;
    }
    /// The key is there.
    std::unique_ptr<Value> erase(Key* key) {
        std::size_t hole = slotOf(key);
        const std::size_t mask = slots_.size() - 1;
        std::unique_ptr<Value> removed = std::move(slots_[hole].value);
        for (std::size_t next = (hole + 1) & mask; slots_[next].key != nullptr;
             next = (next + 1) & mask) {
            const std::size_t home = homeOf(slots_[next].key);
            if (((next - home) & mask) < ((next - hole) & mask)) continue;
            slots_[hole] = std::move(slots_[next]);
            hole = next;
        }
        slots_[hole].key = nullptr;
        slots_[hole].value.reset();
        --used_;
        return removed;
    }
    void clear() {
        slots_.clear();
        used_ = 0;
    }
    template <typename Visit>
    void each(const Visit& visit) const {
        for (const Slot& slot : slots_)
            if (slot.key != nullptr) visit(slot.key, *slot.value);
    }

private:
    struct Slot {
        Key* key = nullptr;
        std::unique_ptr<Value> value;
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
        std::vector<Slot> before(slots_.empty() ? 1024 : 2 * slots_.size());
        std::swap(before, slots_);
        for (Slot& slot : before)
            if (slot.key != nullptr) slots_[slotOf(slot.key)] = std::move(slot);
    }

    std::vector<Slot> slots_;  // a power of two of them, at most half in use
    std::size_t used_ = 0;
};

}  // namespace hw::profiler::native
