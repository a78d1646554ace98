// SPDX-License-Identifier: MIT
#include "core/session/memory_chunk.h"

#include <algorithm>

namespace hw::core {
namespace {

enum Field : std::uint64_t {
    HasAddress = 1,
    HasAllocated = 2,
    HasReserved = 4,
    OtherDevice = 8,
    HasPlace = 16  // seq, op or both follow; another number says which
};
constexpr unsigned kFieldBits = 5;
enum Place : std::uint64_t { HasSeq = 1, HasOp = 2 };

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
    if (event.seq || event.op) fields |= HasPlace;
    events_.unsignedNumber(kindIndex(event.kind) << kFieldBits | fields);
    events_.difference(event.timeNs, last_.timeNs);
    if ((fields & OtherDevice) != 0) events_.number(event.device);
    if (event.address) {
        events_.difference(*event.address, last_.address.value_or(0));
        last_.address = event.address;
    }
    events_.number(event.bytes.count());
    if (event.allocated) {
        events_.difference(*event.allocated,
                           wrappingSum(last_.allocated.value_or(0), event.bytes.count()));
        last_.allocated = event.allocated;
    }
    if (event.reserved) {
        events_.difference(*event.reserved, last_.reserved.value_or(0));
        last_.reserved = event.reserved;
    }
    if ((fields & HasPlace) != 0) {
        const std::uint64_t seq = event.seq ? HasSeq : std::uint64_t{0};
        const std::uint64_t op = event.op ? HasOp : std::uint64_t{0};
        events_.unsignedNumber(seq | op);
        if (event.seq) events_.difference(*event.seq, last_.seq.value_or(0));
        if (event.op) events_.difference(*event.op, last_.op.value_or(0));
        if (event.seq) last_.seq = event.seq;
        if (event.op) last_.op = event.op;
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
    std::int64_t address = 0, allocated = 0, reserved = 0, seq = 0, op = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::uint64_t head = in.unsignedNumber();
        event.timeNs = in.difference(event.timeNs);
        if ((head & OtherDevice) != 0) event.device = in.number();
        event.address.reset(), event.allocated.reset(), event.reserved.reset();
        event.seq.reset(), event.op.reset();
        if ((head & HasAddress) != 0) event.address = address = in.difference(address);
        event.bytes = Bytes(in.number());
        if ((head & HasAllocated) != 0)
            event.allocated = allocated =
                in.difference(wrappingSum(allocated, event.bytes.count()));
        if ((head & HasReserved) != 0) event.reserved = reserved = in.difference(reserved);
        const std::uint64_t place = (head & HasPlace) != 0 ? in.unsignedNumber() : 0;
        if ((place & HasSeq) != 0) event.seq = seq = in.difference(seq);
        if ((place & HasOp) != 0) event.op = op = in.difference(op);
        if (!in.good() || (head >> kFieldBits) >= kinds.size()) return false;
        event.kind = kinds[head >> kFieldBits];
        take(event);
    }
    return in.good() && in.atEnd();
}

}  // namespace hw::core
