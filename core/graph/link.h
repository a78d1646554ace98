// SPDX-License-Identifier: MIT
// The way from a device to its host's memory.
#pragma once

#include "core/base/units.h"

namespace hw::core {

/// What a copy between the device and host memory takes. There is a channel for each direction, and
/// in each of them one copy goes after the other.
struct Link {
    Bytes outPerSecond{25'000'000'000};  // PCIe 4, 16 lanes, pinned memory
    Bytes inPerSecond{25'000'000'000};
    Nanoseconds latency{10'000};  // from one copy to the next

    Nanoseconds outTime(Bytes bytes) const { return time(bytes, outPerSecond); }
    Nanoseconds inTime(Bytes bytes) const { return time(bytes, inPerSecond); }

    bool operator==(const Link&) const = default;

private:
    Nanoseconds time(Bytes bytes, Bytes perSecond) const {
        constexpr double kNsPerSecond = 1e9;
        const double copying = ratio(bytes, perSecond) * kNsPerSecond;
        return latency + Nanoseconds(static_cast<std::int64_t>(copying));
    }
};

}  // namespace hw::core
