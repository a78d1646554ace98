// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace hw::executor {

/// What std::span is, with a layout of its own: that of std::span is another one in libstdc++ 10
/// than in later releases, and these pass between a library that was built there and programs that
/// are compiled on the user's machine.
template <typename Item>
class Span {
public:
    Span() = default;
    Span(Item* data, std::size_t size) : data_(data), size_(size) {}
    /// All of a vector, array, string or span; valid as long as that stays.
    template <typename Items, typename = std::enable_if_t<std::is_convertible_v<
                                  decltype(std::declval<Items&>().data()), Item*>>>
    Span(Items&& items) : Span(items.data(), items.size()) {}

    Item* data() const { return data_; }
    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    Item* begin() const { return data_; }
    Item* end() const { return data_ + size_; }
    Item& operator[](std::size_t i) const { return data_[i]; }

private:
    Item* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace hw::executor
