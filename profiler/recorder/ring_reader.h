// SPDX-License-Identifier: MIT
// The recorder's end of the memory that it shares with an agent (profiler/wire/ring.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <span>

#include "profiler/wire/ring.h"

namespace hw::profiler {

class RingReader {
public:
    RingReader();
    ~RingReader();
    RingReader(const RingReader&) = delete;
    RingReader& operator=(const RingReader&) = delete;

    /// For the agent; -1: there is no memory for a ring.
    int file() const { return file_; }
    /// Where records go; false: there is no room for them, and they stay.
    using Sink = std::function<bool(std::span<const std::byte>)>;
    /// Moves what the agent has written there, a part of it when it is much. False: nothing was
    /// moved, or the agent claims to have written what has no room.
    bool take(const Sink& sink);
    /// Throws away what has not been taken.
    void skip();
    bool nonsense() const { return nonsense_; }  // any thread

private:
    int file_ = -1;
    wire::RingHead* head_ = nullptr;
    std::uint64_t taken_ = 0;  // what the shared memory says is up to the agent
    std::atomic<bool> nonsense_{false};
};

}  // namespace hw::profiler
