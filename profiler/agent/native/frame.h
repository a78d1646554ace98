// SPDX-License-Identifier: MIT
// Frames of the wire format (profiler/wire/format.h), gathered before they go to the agent.
#pragma once

#include <stdexcept>

#include "agent_api.h"
#include "buffer.h"
#include "format.h"

namespace hw::profiler::native {

using FrameType = wire::Type;

/// The recorder is gone: stop capturing, quietly.
struct Broken : std::runtime_error {
    Broken() : std::runtime_error("the recorder is gone") {}
};

/// One frame at a time: begin, put what it holds, end. After begin, text and raw, numbers of
/// Buffer::kRoom bytes may be put; for more, reserve.
class Stream {
public:
    explicit Stream(const AgentApi& agent) : agent_(agent) {}

    Stream& begin(FrameType type) {
        bytes_.reserve();
        start_ = bytes_.size();
        return put(wire::kMagic)
            .put(wire::kVersion)
            .put(static_cast<std::uint16_t>(type))
            .put(std::uint32_t{0});
    }
    Stream& reserve(std::size_t bytes) {
        bytes_.reserve(bytes);
        return *this;
    }
    template <typename Number>
    HW_INLINE Stream& put(Number value) {
        bytes_.put(value);
        return *this;
    }
    HW_INLINE Stream& text(std::string_view value) {
        put(static_cast<std::uint32_t>(value.size()));
        return raw(value);
    }
    HW_INLINE Stream& raw(std::string_view value) {
        bytes_.append(value);
        return *this;
    }
    void end() {
        const auto length = static_cast<std::uint32_t>(bytes_.size() - start_ - wire::kHeaderBytes);
        std::memcpy(bytes_.data() + start_ + wire::kHeaderBytes - sizeof(length), &length,
                    sizeof(length));
        if (bytes_.size() > kGathered) flush();
    }
    /// Hands over what has been gathered. Throws Broken.
    void flush() {
        if (bytes_.size() == 0) return;
        const int status =
            agent_.sendFrames(bytes_.data(), static_cast<std::int64_t>(bytes_.size()));
        bytes_.clear();
        if (status != 0) throw Broken();
    }
    void gap(std::string_view what, std::string_view why) {
        begin(FrameType::Gap).put(std::int64_t{0}).put(std::int64_t{0}).text(what).text(why).end();
    }

private:
    static constexpr std::size_t kGathered = 8u << 10;

    const AgentApi& agent_;
    Buffer bytes_;
    std::size_t start_ = 0;
};

}  // namespace hw::profiler::native
