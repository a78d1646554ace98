// SPDX-License-Identifier: MIT
// Memory events as a caching allocator logs them, as many as one likes.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/session/session.h"

namespace hw::bench {

/// Up to 2,000 blocks alive, in 512-byte units, 1 to 200 microseconds apart; the same at every run.
class MadeUpEvents {
public:
    core::MemoryEventRow next();

private:
    struct Block {
        std::int64_t address, bytes;
    };
    std::mt19937_64 random_{1};
    std::vector<Block> alive_;
    std::int64_t time_ = 1'000'000'000, allocated_ = 0, reserved_ = 0;
};

/// Writes a session of so many of them, with a commit every 100,000. Errors: BadInput.
core::Status writeEvents(const std::string& path, std::int64_t count);

}  // namespace hw::bench
