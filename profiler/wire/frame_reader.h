// SPDX-License-Identifier: MIT
// Cuts a byte stream into frames and refuses whatever is not one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "profiler/wire/format.h"

namespace hw::profiler::wire {

struct Frame {
    Type type;
    std::span<const std::byte> payload;  // in the reader, until it is fed again
};

/// Feed it bytes as they arrive, take frames out. After an error it stays in error: a stream that
/// has lost its place cannot find it again.
class FrameReader {
public:
    void feed(std::span<const std::byte> bytes);
    /// The next whole frame; nothing when more bytes are needed or the stream is broken.
    std::optional<Frame> next();
    /// What is wrong with the stream; empty as long as nothing is.
    const std::string& error() const { return error_; }
    /// Bytes of an unfinished frame.
    std::size_t pending() const { return buffer_.size() - at_; }

private:
    std::vector<std::byte> buffer_;
    std::size_t at_ = 0;
    std::string error_;
};

/// A frame as bytes, header included.
std::vector<std::byte> encodeFrame(Type type, std::span<const std::byte> payload);

}  // namespace hw::profiler::wire
