// SPDX-License-Identifier: MIT
// Bytes one after the other: what is put into it every op must not cost a call each.
#pragma once

#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

namespace hw::profiler::native {

class Buffer {
public:
    Buffer() = default;
    Buffer(Buffer&& other) noexcept
        : bytes_(std::exchange(other.bytes_, nullptr)),
          size_(std::exchange(other.size_, 0)),
          capacity_(std::exchange(other.capacity_, 0)) {}
    Buffer& operator=(Buffer&& other) noexcept {
        std::swap(bytes_, other.bytes_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
        return *this;
    }
    ~Buffer() { std::free(bytes_); }

    const char* data() const { return bytes_; }
    char* data() { return bytes_; }
    std::size_t size() const { return size_; }
    std::string_view view() const { return {bytes_, size_}; }
    void clear() { size_ = 0; }

    /// Where `bytes` more may be written, of which `taken()` counts.
    char* room(std::size_t bytes) {
        if (capacity_ - size_ < bytes) enlarge(bytes);
        return bytes_ + size_;
    }
    void taken(std::size_t bytes) { size_ += bytes; }

    template <typename Number>
    void put(Number value) {
        std::memcpy(room(sizeof(value)), &value, sizeof(value));
        size_ += sizeof(value);
    }
    void operator+=(char value) { put(value); }
    void operator+=(std::string_view value) {
        if (value.empty()) return;
        std::memcpy(room(value.size()), value.data(), value.size());
        size_ += value.size();
    }

private:
    void enlarge(std::size_t bytes) {
        std::size_t capacity = capacity_ < 512 ? 512 : 2 * capacity_;
        while (capacity - size_ < bytes) capacity *= 2;
        void* grown = std::realloc(bytes_, capacity);
        if (grown == nullptr) throw std::bad_alloc();
        bytes_ = static_cast<char*>(grown);
        capacity_ = capacity;
    }

    char* bytes_ = nullptr;
    std::size_t size_ = 0, capacity_ = 0;
};

}  // namespace hw::profiler::native
