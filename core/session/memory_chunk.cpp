// SPDX-License-Identifier: MIT
#include "core/session/memory_chunk.h"

#include <algorithm>

namespace hw::core {
namespace {

enum Field : std::uint64_t { HasAddress = 1, HasAllocated = 2, HasReserved = 4, OtherDevice = 8 };
constexpr unsigned kFieldBits = 4;

std::int64_t sum(std::int64_t a, std::int64_t b) {  // modulo 2^64
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

}  // namespace

std::uint64_t MemoryChunkEncoder::kindIndex(const std::string& kind) {
    const auto at = std::find(kinds_.begin(), kinds_.end(), kind);
    const auto index = static_cast<std::uint64_t>(at - kinds_.begin());
    if (at == kinds_.end()) kinds_.push_back(kind);
    return index;
}

void MemoryChunkEncoder::append(const MemoryEventRow& event) {
    std::uint64_t fields = 0;
    if (event.address) fields |= HasAddress;
    if (event.allocated) fields |= HasAllocated;
    if (event.reserved) fields |= HasReserved;
    if (event.device != last_.device) fields |= OtherDevice;
    events_.unsignedNumber(kindIndex(event.kind) << kFieldBits | fields);
    events_.difference(event.timeNs, last_.timeNs);
    if ((fields & OtherDevice) != 0) events_.number(event.device);
    if (event.address) {
        events_.difference(*event.address, last_.address.value_or(0));
        last_.address = event.address;
    }
    events_.number(event.bytes.count());
    if (event.allocated) {
        events_.difference(*event.allocated, sum(last_.allocated.value_or(0), event.bytes.count()));
        last_.allocated = event.allocated;
    }
    if (event.reserved) {
        events_.difference(*event.reserved, last_.reserved.value_or(0));
        last_.reserved = event.reserved;
    }
    last_.timeNs = event.timeNs;
    last_.device = event.device;
    earliest_ = count_ == 0 ? event.timeNs : std::min(earliest_, event.timeNs);
    latest_ = count_ == 0 ? event.timeNs : std::max(latest_, event.timeNs);
    ++count_;
}

void MemoryChunkEncoder::clear() {
    events_.clear();
    last_ = {};
    count_ = earliest_ = latest_ = 0;
}

std::vector<std::byte> MemoryChunkEncoder::blob() const {
    VarintWriter out;
    out.unsignedNumber(static_cast<std::uint64_t>(count_));
    out.unsignedNumber(kinds_.size());
    for (const std::string& kind : kinds_) out.text(kind);
    out.raw(events_.bytes());
    return out.bytes();
}

bool decodeMemoryChunk(std::span<const std::byte> blob,
                       const std::function<void(const MemoryEventRow&)>& take) {
    VarintReader in(blob);
    const std::uint64_t count = in.unsignedNumber();
    std::vector<std::string> kinds;
    for (std::uint64_t i = in.unsignedNumber(); i > 0 && in.good(); --i) kinds.push_back(in.text());
    MemoryEventRow event;
    std::int64_t address = 0, allocated = 0, reserved = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t head = in.unsignedNumber();
        event.timeNs = in.difference(event.timeNs);
        if ((head & OtherDevice) != 0) event.device = in.number();
        event.address.reset(), event.allocated.reset(), event.reserved.reset();
        if ((head & HasAddress) != 0) event.address = address = in.difference(address);
        event.bytes = Bytes(in.number());
        if ((head & HasAllocated) != 0)
            event.allocated = allocated = in.difference(sum(allocated, event.bytes.count()));
        if ((head & HasReserved) != 0) event.reserved = reserved = in.difference(reserved);
        if (!in.good() || (head >> kFieldBits) >= kinds.size()) return false;
        event.kind = kinds[head >> kFieldBits];
        take(event);
    }
    return in.good() && in.atEnd();
}

}  // namespace hw::core
