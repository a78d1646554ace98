// SPDX-License-Identifier: MIT
#include "profiler/cupti/buffers.h"

#include <sys/mman.h>

#include <chrono>

namespace hw::profiler::cupti {

std::uint8_t* Buffers::lend() {
    const std::lock_guard<std::mutex> guard(lock_);
    if (freeCount_ > 0) return free_[--freeCount_];
    void* memory = allocated_ == kMost ? MAP_FAILED
                                       : mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        ++refused_;
        return nullptr;
    }
    ++allocated_;
    return static_cast<std::uint8_t*>(memory);
}

void Buffers::take(std::uint8_t* data, std::size_t validBytes) {
    const std::lock_guard<std::mutex> guard(lock_);
    if (data == nullptr) return;
    if (validBytes == 0) {
        free_[freeCount_++] = data;
        return;
    }
    ++completed_;
    filled_[(first_ + filledCount_++) % kMost] = {data, validBytes};
    filledOrWoken_.notify_one();
}

Buffers::Filled Buffers::next(int milliseconds) {
    std::unique_lock<std::mutex> guard(lock_);
    filledOrWoken_.wait_for(guard, std::chrono::milliseconds(milliseconds),
                            [this] { return filledCount_ > 0 || woken_; });
    woken_ = false;
    if (filledCount_ == 0) return {};
    const Filled filled = filled_[first_];
    first_ = (first_ + 1) % kMost;
    --filledCount_;
    return filled;
}

void Buffers::giveBack(std::uint8_t* data) {
    const std::lock_guard<std::mutex> guard(lock_);
    free_[freeCount_++] = data;
}

void Buffers::wake() {
    const std::lock_guard<std::mutex> guard(lock_);
    woken_ = true;
    filledOrWoken_.notify_one();
}

std::size_t Buffers::allocatedBytes() {
    const std::lock_guard<std::mutex> guard(lock_);
    return allocated_ * kBytes;
}

std::size_t Buffers::refused() {
    const std::lock_guard<std::mutex> guard(lock_);
    return refused_;
}

std::size_t Buffers::completed() {
    const std::lock_guard<std::mutex> guard(lock_);
    return completed_;
}

}  // namespace hw::profiler::cupti
