// SPDX-License-Identifier: MIT
// The agent's side of the channel: a socket that says when to end, and memory shared with the
// recorder (profiler/wire/ring.h) that carries the frames, without a system call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profiler/wire/format.h"

namespace hw::profiler::agent {

struct Config {
    std::int32_t steps = 1, warmup = 0, every = 1;
    std::uint32_t flags = 0;
    std::int64_t cap = 0, heuristic = -1;
    char nativeCapture[wire::kPathBytes] = "";
    char livePrograms[wire::kPathBytes] = "";
};

enum class Sent : int { Queued = 0, Full = 1, Broken = -1 };

/// Starts a thread that takes no signals and is not joined.
bool startDetachedThread(void* (*body)(void*));
/// Connects to the recorder. Only one connection at a time.
bool openChannel(const char* socketPath);
/// Waits for the recorder's configuration and says hello: from here on frames can be sent. False:
/// none came, the channel stays broken.
bool receiveConfig(Config& config, int timeoutMilliseconds);
/// Queues one frame of the two parts. With `wait`, waits for room as long as the recorder reads on
/// (10 s without any progress break the channel); without, says Full.
Sent sendFrame(wire::Type type, const void* first, std::size_t firstBytes, const void* second,
               std::size_t secondBytes, bool wait);
/// Queues whole frames, headers included; waits for room. What is queued reaches the recorder
/// whatever becomes of this process.
Sent sendFrames(const void* data, std::size_t bytes);
bool channelBroken();
/// Waits for the recorder's answer to the introduction of the process, once a connection.
void awaitNative(Config& config, int timeoutMilliseconds);
/// Blocks until the recorder ends the connection or it breaks; takes its answer in meanwhile.
void waitForHangup(Config& config);
void closeChannel();
/// In a forked child: drops the connection without touching locks.
void abandonChannel();

}  // namespace hw::profiler::agent
