// SPDX-License-Identifier: MIT
#include "profiler/wire/frame_reader.h"

#include <cstring>

namespace hw::profiler::wire {
namespace {

struct Header {
    std::uint32_t magic;
    std::uint16_t version;
    std::uint16_t type;
    std::uint32_t length;
};
static_assert(sizeof(Header) == kHeaderBytes);

bool knownType(std::uint16_t type) {
    return (type >= static_cast<std::uint16_t>(Type::Hello) &&
            type <= static_cast<std::uint16_t>(Type::LiveMismatch)) ||
           type == static_cast<std::uint16_t>(Type::Config) ||
           type == static_cast<std::uint16_t>(Type::Native);
}

std::string headerError(const Header& header) {
    if (header.magic != kMagic) return "not a Highwater record stream";
    if (header.version != kVersion)
        return "the agent speaks version " + std::to_string(header.version) +
               " of the record format, this recorder version " + std::to_string(kVersion);
    if (!knownType(header.type)) return "unknown record type " + std::to_string(header.type);
    if (header.length > kMaxPayload)
        return "a record of " + std::to_string(header.length) + " bytes";
    return {};
}

}  // namespace

void FrameReader::feed(std::span<const std::byte> bytes) {
    if (!error_.empty()) return;
    if (at_ == buffer_.size()) {
        buffer_.clear();
        at_ = 0;
    } else if (at_ > (1u << 20)) {
        buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(at_));
        at_ = 0;
    }
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

std::optional<Frame> FrameReader::next() {
    if (!error_.empty() || pending() < kHeaderBytes) return std::nullopt;
    Header header{};
    std::memcpy(&header, buffer_.data() + at_, kHeaderBytes);
    error_ = headerError(header);
    if (!error_.empty() || pending() - kHeaderBytes < header.length) return std::nullopt;
    const auto payload = std::span(buffer_).subspan(at_ + kHeaderBytes, header.length);
    at_ += kHeaderBytes + header.length;
    return Frame{static_cast<Type>(header.type), payload};
}

std::vector<std::byte> encodeFrame(Type type, std::span<const std::byte> payload) {
    const Header header{kMagic, kVersion, static_cast<std::uint16_t>(type),
                        static_cast<std::uint32_t>(payload.size())};
    std::vector<std::byte> bytes(kHeaderBytes + payload.size());
    std::memcpy(bytes.data(), &header, kHeaderBytes);
    if (!payload.empty()) std::memcpy(bytes.data() + kHeaderBytes, payload.data(), payload.size());
    return bytes;
}

}  // namespace hw::profiler::wire
