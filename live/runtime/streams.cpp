// SPDX-License-Identifier: MIT
#include "streams.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace hw::live::runtime {
namespace {

c10::Stream current(c10::Device device) {
    return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

void exchange(c10::Stream stream) {
    c10::impl::VirtualGuardImpl(stream.device_type()).exchangeStream(stream);
}

}  // namespace

void Streams::letWait(c10::Stream one, c10::Stream other) {
    c10::Event event(other.device_type());
    event.record(other);
    event.block(one);
}

std::optional<c10::Stream> Streams::of(c10::Device device) const {
    for (const c10::Stream stream : settled_)
        if (stream.device() == device) return stream;
    return std::nullopt;
}

std::vector<std::size_t> Streams::follow(c10::Device device, bool reads, std::size_t op) {
    if (!device.has_index()) device = c10::impl::VirtualGuardImpl(device.type()).getDevice();
    for (const c10::Stream stream : settled_)
        if (stream.device() == device) return {};
    const c10::Stream now = current(device);
    if (!reads) {
        early_.emplace_back(op, now);
        return {};
    }
    settled_.push_back(now);
    std::vector<std::size_t> others;
    for (const auto& [earlier, stream] : early_)
        if (stream.device() == device && stream != now) others.push_back(earlier);
    return others;
}

bool Streams::elsewhere() const {
    bool any = false;
    for (const c10::Stream stream : settled_) {
        const c10::Stream now = current(stream.device());
        if (now == stream) continue;
        letWait(now, stream);
        any = true;
    }
    return any;
}

void Streams::wait() const {
    for (const c10::Stream stream : settled_) stream.synchronize();
}

Streams::Turn::Turn(const Streams& streams) : streams_(streams) {
    for (const c10::Stream stream : streams.settled_) {
        before_.push_back(current(stream.device()));
        exchange(stream);
    }
}

Streams::Turn::~Turn() {
    for (const c10::Stream stream : before_) exchange(stream);
    try {
        static_cast<void>(streams_.elsewhere());
    } catch (...) {  // the device is broken, as the program's next op will say
    }
}

}  // namespace hw::live::runtime
