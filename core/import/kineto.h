// SPDX-License-Identifier: MIT
// Traces of the PyTorch profiler (Kineto), of 2021 to today.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/import/format.h"
#include "core/import/text_source.h"
#include "core/session/session_writer.h"

namespace hw::core {

/// Writes ops with their nesting threads, times, phases and layers, kernels and copies with the op
/// that launched them, and every `[memory]` event with the op that it happened in, into an empty
/// session. Layers come from modules (`python_function` events, `Module Hierarchy`), else from
/// Python call stacks; backward ops get the layer of their forward op by sequence number. Phases:
/// autograd's functions and threads are backward, `Optimizer.*` annotations optimizer. Memory is
/// bounded: rows are staged and sorted in SQLite's own temporary storage. A trace that is cut short
/// or damaged is imported as far as it goes, with a gap that says where it ends. There is no step:
/// the format does not say which tensors an op reads.
/// `opOf`, where given, gets the session's op of every record function id (of older traces: of
/// every external id, which was the same). Errors: BadInput when nothing of a trace is in it.
Status importKineto(TextSource& source, SessionWriter& session,
                    std::unordered_map<std::int64_t, std::int64_t>* opOf = nullptr);

/// "TOP(ResNet)::forward.layer1(Sequential)::forward.0(BasicBlock)::forward" → names with types.
std::vector<std::pair<std::string, std::string>> modulesOf(const std::string& hierarchy);
/// "…/conv.py(443): forward;…/train.py(5): <module>" → names, outermost first.
std::vector<std::string> framesOf(const std::string& callStack);
/// The same with whole paths, as rows without ids.
std::vector<SourceFrameRow> sourceFramesOf(const std::string& callStack);

const ImportFormat& kinetoFormat();

}  // namespace hw::core
