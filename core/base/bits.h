// SPDX-License-Identifier: MIT
// std::bit_cast for the C++ library of GCC 10, which packages for older systems are built with.
#pragma once

#include <cstring>
#include <type_traits>

namespace hw::core {

/// The same bits as a value of another type of that size.
template <class To, class From>
To bitCast(const From& from) {
    static_assert(sizeof(To) == sizeof(From) && std::is_trivially_copyable_v<To> &&
                  std::is_trivially_copyable_v<From>);
    To to;
    std::memcpy(&to, &from, sizeof(to));
    return to;
}

}  // namespace hw::core
