// SPDX-License-Identifier: MIT
// The rows of a step as one blob: a tenth of the bytes and of the time that rows in tables and
// their indexes take. Private to core/session.
//
// A blob is a format byte, the numbers of ops, storages and tensors, the size of what follows when
// it is inflated, and a zlib stream: a table of texts (number, texts), then the columns, each as
// its size and its bytes. Numbers that grow with the rows (ids, seqs, times) are differences to the
// row before. In the texts of arguments the ids of tensors are holes, so that most ops of a step
// share theirs with others; the ids stand in a column of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/session/rows.h"

namespace hw::core {

/// How much of an op is read. Spans: all but its arguments, its stack, inputs, outputs and writes;
/// Edges: all but its arguments.
enum class OpDetail : std::uint8_t { Spans, Edges, Everything };

struct PackedCounts {
    std::int64_t ops = 0, storages = 0, tensors = 0;
};

/// None where the step is too large for a blob: then its rows go into tables.
std::optional<std::vector<std::byte>> packStep(const StepContents& rows);

/// `rows` becomes what was packed; with Spans its ops alone. What is wrong with the blob, empty
/// when it is whole; then nothing is to be made of `rows`. Takes at most some hundred MiB, whatever
/// the bytes are.
std::string unpackStep(std::span<const std::byte> blob, OpDetail detail, StepContents& rows);
/// The inflated part of a blob. False when it is malformed.
bool unpackColumns(std::span<const std::byte> inflated, const PackedCounts& counts, OpDetail detail,
                   StepContents& rows);
/// Without a look at the rows; none when the blob is malformed.
std::optional<PackedCounts> packedCounts(std::span<const std::byte> blob);

}  // namespace hw::core
