// SPDX-License-Identifier: MIT
// What a device did, stream by stream: kernels, copies and memory sets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/units.h"
#include "core/session/session.h"

namespace hw::core {

struct DeviceWork {
    struct Span {
        std::int32_t name = 0;  // index into names
        Nanoseconds begin, end;
    };
    struct Stream {
        std::int64_t id = 0;
        Nanoseconds busy;         // sum of the spans' lengths
        std::vector<Span> spans;  // by begin
    };
    std::vector<std::string> names;
    std::vector<Stream> streams;  // the busiest first
};

/// Of the device with this ordinal. Times are from `originNs` of the session's clock on; what ended
/// before it is left out. Empty where no kernel was recorded. Errors: BadInput when the session
/// cannot be read.
Result<DeviceWork> loadDeviceWork(const Session& session, std::int64_t ordinal,
                                  std::int64_t originNs);

}  // namespace hw::core
