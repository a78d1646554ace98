// SPDX-License-Identifier: MIT
// Bytes one after the other: what is put into it every op must not cost a call each, nor a look at
// the room that is left.
#pragma once

#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

namespace hw::profiler::native {

#define HW_INLINE inline __attribute__((always_inline))

class Buffer {
public:
    /// Bytes that may be put after reserve() and append() without asking for room.
    static constexpr std::size_t kRoom = 128;

    Buffer() = default;
    Buffer(Buffer&& other) noexcept
        : begin_(std::exchange(other.begin_, nullptr)),
          end_(std::exchange(other.end_, nullptr)),
          limit_(std::exchange(other.limit_, nullptr)) {}
    Buffer& operator=(Buffer&& other) noexcept {
        std::swap(begin_, other.begin_);
        std::swap(end_, other.end_);
        std::swap(limit_, other.limit_);
        return *this;
    }
    ~Buffer() { std::free(begin_); }

    const char* data() const { return begin_; }
    char* data() { return begin_; }
    std::size_t size() const { return static_cast<std::size_t>(end_ - begin_); }
    std::string_view view() const { return {begin_, size()}; }
    void clear() { end_ = begin_; }

    /// Room for that many bytes and kRoom.
    HW_INLINE void reserve(std::size_t bytes = 0) {
        if (static_cast<std::size_t>(limit_ - end_) < bytes + kRoom) enlarge(bytes + kRoom);
    }
    HW_INLINE void append(std::string_view value) {
        reserve(value.size());
        copy(value.data(), value.size());
    }

    // For what there is room.

    template <typename Number>
    HW_INLINE void put(Number value) {
        copy(&value, sizeof(value));
    }
    template <std::size_t size>
    HW_INLINE void put(const char (&text)[size]) {
        copy(text, size - 1);
    }
    /// Where to write oneself; `wrote()` takes the end of it.
    char* end() { return end_; }
    void wrote(char* end) { end_ = end; }

private:
    HW_INLINE void copy(const void* bytes, std::size_t size) {
        std::memcpy(end_, bytes, size);
        end_ += size;
    }
    __attribute__((noinline, cold)) void enlarge(std::size_t bytes) {
        const std::size_t used = size();
        std::size_t capacity = 2 * static_cast<std::size_t>(limit_ - begin_);
        if (capacity < used + bytes) capacity = 2 * (used + bytes);
        void* grown = std::realloc(begin_, capacity);
        if (grown == nullptr) throw std::bad_alloc();
        begin_ = static_cast<char*>(grown);
        end_ = begin_ + used;
        limit_ = begin_ + capacity;
    }

    char *begin_ = nullptr, *end_ = nullptr, *limit_ = nullptr;
};

}  // namespace hw::profiler::native
