// SPDX-License-Identifier: MIT
// A small recorded step as rows, for tests of the session.
#pragma once

#include "core/session/session_writer.h"

namespace hw::test {

/// Step `id`: a constant of 100 bytes, two ops that make 200 and 50 bytes (workspace 4), releases
/// of the first two. Steps follow each other on the axis of seqs. Peak 354. Empty status: all
/// written.
inline core::Status writeSmallStep(core::SessionWriter& session, std::int64_t id) {
    using namespace core;
    const std::int64_t seq = id * 100, storage = id * 10, op = id * 10;
    for (std::int64_t i = 0; i < 2; ++i) {
        OpRow row;
        row.id = op + i, row.seq = seq + 11 + i, row.name = "aten::make",
        row.phase = Phase::Forward;
        row.duration = Nanoseconds(10), row.workspace = Bytes(4), row.beginNs = seq + i;
        row.inputs = {{storage + i, 0}}, row.outputs = {{storage + i + 1, true}};
        if (Status status = session.insert(row); !status) return status;
    }
    for (std::int64_t i = 0; i < 3; ++i) {
        StorageRow row;
        row.id = storage + i, row.bytes = Bytes(i == 0 ? 100 : i == 1 ? 200 : 50);
        row.allocSeq = seq + 10 + i, row.freeSeq = i == 2 ? seq + 98 : seq + 20 + i;
        if (i > 0) row.creator = op + i - 1;
        if (Status status = session.insert(row); !status) return status;
        TensorRow tensor;
        tensor.id = tensor.storage = row.id, tensor.sizes = "[5]", tensor.strides = "[1]";
        if (Status status = session.insert(tensor); !status) return status;
    }
    StepRow step;
    step.id = id, step.firstSeq = seq + 10, step.endSeq = seq + 99;
    return session.insert(step, {});
}

}  // namespace hw::test
