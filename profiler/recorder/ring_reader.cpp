// SPDX-License-Identifier: MIT
#include "profiler/recorder/ring_reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace hw::profiler {
namespace {

constexpr std::size_t kMapped = wire::kRingHeadBytes + wire::kRingBytes;
constexpr std::size_t kMostAtOnce = 64u << 10;

}  // namespace

RingReader::RingReader() : file_(memfd_create("highwater", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    // Sealed: an agent that shrank it would end us with a bus error.
    if (file_ < 0 || ftruncate(file_, kMapped) != 0 ||
        fcntl(file_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        return;
    void* memory = mmap(nullptr, kMapped, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (memory != MAP_FAILED) head_ = static_cast<wire::RingHead*>(memory);
}

RingReader::~RingReader() {
    if (head_ != nullptr) munmap(head_, kMapped);
    if (file_ >= 0) close(file_);
}

bool RingReader::take(const Sink& sink) {
    if (head_ == nullptr || nonsense_) return false;
    const std::uint64_t there = head_->written.load(std::memory_order_acquire) - taken_;
    nonsense_ = there > wire::kRingBytes;
    if (there == 0 || nonsense_) return false;
    const std::size_t at = taken_ % wire::kRingBytes;
    const std::size_t run = std::min<std::size_t>({there, wire::kRingBytes - at, kMostAtOnce});
    const auto* records = reinterpret_cast<const std::byte*>(head_) + wire::kRingHeadBytes;
    if (!sink({records + at, run})) return false;
    taken_ += run;
    head_->taken.store(taken_, std::memory_order_release);
    return true;
}

void RingReader::skip() {
    if (head_ == nullptr) return;
    taken_ = head_->written.load(std::memory_order_acquire);
    head_->taken.store(taken_, std::memory_order_release);
}

}  // namespace hw::profiler
