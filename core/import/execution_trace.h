// SPDX-License-Identifier: MIT
// Execution traces of PyTorch (ExecutionTraceObserver) become a step that can be planned.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "core/base/result.h"
#include "core/import/format.h"
#include "core/import/text_source.h"
#include "core/session/session_writer.h"

namespace hw::core {

/// Times of a profiler trace of the same run, by record function id.
struct RecordedTimes {
    struct Op {
        std::int64_t beginNs = 0, durationNs = 0;
        std::optional<std::int64_t> deviceNs;  // of its kernels, where it launched any itself
    };
    std::unordered_map<std::int64_t, Op> byRecordFunction;
};
/// Reads a Kineto trace for its times. Errors: BadInput as importKineto, or when it holds no ids.
Result<RecordedTimes> readRecordedTimes(const std::string& path);

/// Writes one step into an empty session. Ops are the nodes with a schema that call no other op,
/// and those that return a storage which no op below them made; a result on the storage of an
/// argument is a view, or, where the schema says that the argument is written, the written tensor.
/// The format has no times and no frees: with `times` an op takes as long as its kernels, or else
/// itself, without them 1 µs; a storage is freed after the last op that reads it, and stays when
/// none does. Gaps say so. A trace that is cut short is imported as far as it goes.
/// Errors: BadInput when it has no op, or sizes that contradict each other.
Result<JoinRate> importExecutionTrace(TextSource& source, SessionWriter& session,
                                      const RecordedTimes* times = nullptr);

const ImportFormat& executionTraceFormat();

}  // namespace hw::core
