// SPDX-License-Identifier: MIT
#include "core/session/packed_step.h"

#include <cstdlib>

namespace {

using namespace hw::core;

/// What was read can be packed, and comes back.
void require(const StepContents& rows) {
    const auto blob = packStep(rows);
    StepContents back;
    if (blob && (!unpackStep(*blob, OpDetail::Everything, back).empty() ||
                 back.ops.size() != rows.ops.size()))
        std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto bytes = std::as_bytes(std::span(data, size));
    StepContents rows;
    if (unpackStep(bytes, OpDetail::Everything, rows).empty()) require(rows);
    // Few inputs are whole zlib streams: what such a one holds, too.
    if (size < 3) return 0;
    const PackedCounts counts{data[0], data[1], data[2]};
    for (const OpDetail detail : {OpDetail::Spans, OpDetail::Edges, OpDetail::Everything})
        if (unpackColumns(bytes.subspan(3), counts, detail, rows) && detail == OpDetail::Everything)
            require(rows);
    return 0;
}
