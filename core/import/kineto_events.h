// SPDX-License-Identifier: MIT
// The events of a Kineto trace, one after another.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/import/text_source.h"

namespace hw::core {

/// One element of `traceEvents` with the arguments that matter for memory.
struct KinetoEvent {
    std::string phase, category, name;  // "X", "cpu_op", "aten::add"
    std::optional<std::int64_t> pid, thread;
    std::optional<std::int64_t> beginNs;
    std::int64_t durationNs = 0;
    std::optional<std::int64_t> externalId, recordFunction, eventIndex, sequence, forwardThread;
    std::optional<std::int64_t> correlation, stream, device;
    std::optional<std::int64_t> deviceType, deviceId, address, bytes, allocated, reserved;
    std::string callStack, moduleHierarchy;
};
struct KinetoDevice {
    std::optional<std::int64_t> id, bytes;
    std::string name;
};
struct KinetoHandlers {
    std::function<void(const KinetoEvent&)> event;
    std::function<void(const KinetoDevice&)> device;
    std::function<void(std::int64_t)> rank;
};

/// Reads a trace, an object with `traceEvents` or the bare array, in one pass with bounded memory.
/// Returns why it stopped before the end, with the byte; empty when the trace is whole. What the
/// handlers throw passes through.
std::string readKinetoEvents(TextSource& source, const KinetoHandlers& handlers);

}  // namespace hw::core
