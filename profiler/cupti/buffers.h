// SPDX-License-Identifier: MIT
// The buffers that CUPTI fills: a fixed number, lent to it and read by one thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include <array>
#include <condition_variable>
#include <mutex>

namespace hw::profiler::cupti {

class Buffers {
public:
    static constexpr std::size_t kBytes = 2u << 20;  // of one: about 7,000 launches
    static constexpr std::size_t kMost = 16;

    struct Filled {
        std::uint8_t* data = nullptr;
        std::size_t validBytes = 0;
    };

    /// For CUPTI. Null: all are taken, so CUPTI drops records and counts them.
    std::uint8_t* lend();
    void take(std::uint8_t* data, std::size_t validBytes);

    /// For the reader: waits up to `milliseconds` for a buffer or for wake(); null data: neither.
    Filled next(int milliseconds);
    void giveBack(std::uint8_t* data);
    void wake();

    std::size_t allocatedBytes();
    /// Requests that found no free buffer.
    std::size_t refused();
    std::size_t completed();

private:
    std::mutex lock_;
    std::condition_variable filledOrWoken_;
    std::array<std::uint8_t*, kMost> free_{};
    std::size_t freeCount_ = 0, allocated_ = 0, refused_ = 0, completed_ = 0;
    std::array<Filled, kMost> filled_{};  // a ring
    std::size_t first_ = 0, filledCount_ = 0;
    bool woken_ = false;
};

}  // namespace hw::profiler::cupti
