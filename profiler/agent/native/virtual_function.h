// SPDX-License-Identifier: MIT
// Where a class keeps the address of a virtual member function (Itanium C++ ABI, 2.3 and 2.5.2), to
// stand between its callers and it: what the framework makes at its start can be had in no other
// way, as there is no hook for it.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

namespace hw::profiler::native {

/// Null: the member is not virtual.
template <typename Object, typename Member>
void** virtualFunction(Object& object, Member member) {
    std::uintptr_t words[2];
    static_assert(sizeof(member) == sizeof(words));
    std::memcpy(words, &member, sizeof(words));
    if (words[0] % 2 == 0) return nullptr;
    char* table;
    std::memcpy(&table, &object, sizeof(table));
    return reinterpret_cast<void**>(table + words[0] - 1);
}

/// What is called from now on. Null: the table cannot be written; else what was called so far. The
/// page stays writable: whether it was, nothing says.
inline void* redirectVirtual(void** entry, void* to) {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto begin = reinterpret_cast<std::uintptr_t>(entry) & ~(page - 1);
    if (mprotect(reinterpret_cast<void*>(begin), page, PROT_READ | PROT_WRITE) != 0) return nullptr;
    return __atomic_exchange_n(entry, to, __ATOMIC_SEQ_CST);
}

}  // namespace hw::profiler::native
