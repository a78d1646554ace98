// SPDX-License-Identifier: MIT
// Allocation problems and their solutions as CSV, in the form of the public benchmarks.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/import/format.h"
#include "core/memory/layout.h"
#include "core/session/session_writer.h"

namespace hw::core {

/// Blocks with the names that the file gives them, in its order.
struct AllocationProblem {
    std::vector<std::string> ids;
    std::vector<Block> blocks;
    /// Offsets that are multiples of it fit every block: the least common multiple of their
    /// alignments.
    Bytes alignment{1};
    bool mixedAlignment = false;  // some blocks ask for less: a packing may be lower than with it
};

/// Reads a table with the columns id, lower, upper and size (bytes) in any order; a block lives
/// during [lower, upper). Older names: buffer or buffer_id, start or begin, and end, which is the
/// last moment of a block's life instead of the first one after it. A column alignment is kept. A
/// column gaps may only be empty: blocks that are away for a while are not laid out. Other columns
/// and empty lines are ignored, fields may be quoted. Plain or gzip. Errors: BadInput with the
/// line, for a missing column, a row of another length, a number that is none, negative or out of
/// range, lower >= upper, a gap, an id that is there twice, and sizes whose sum exceeds 62 bits.
Result<AllocationProblem> readAllocationCsv(const std::string& path);

/// Fills a new session with the problem's blocks as memory events, in the order of their times: a
/// trace of a device without ops. Errors: BadInput as above.
Status importAllocationCsv(const std::string& path, SessionWriter& session);

/// Writes `id,offset`, one row a block in the given order. Errors: BadInput when it cannot.
Status writeOffsetCsv(const std::string& path, const std::vector<std::string>& ids,
                      const std::vector<Bytes>& offsets);

/// The fields of one CSV line (RFC 4180; a field does not span lines). Error: BadInput, without
/// place.
Result<std::vector<std::string>> splitCsvLine(const std::string& line);

const ImportFormat& allocationCsvFormat();

}  // namespace hw::core
