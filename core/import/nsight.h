// SPDX-License-Identifier: MIT
// SQLite exports of Nsight Systems (`nsys export --type sqlite`).
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/import/format.h"
#include "core/session/session_writer.h"

namespace hw::core {

/// The file is a SQLite database with one of an export's tables: META_DATA_EXPORT, or one of CUDA's
/// activities or memory.
bool isNsightFile(const std::string& path);

/// Writes kernels, copies and memory sets as a Kineto trace's are, NVTX ranges, and, where the
/// report has them, the rows of CUDA_GPU_MEMORY_USAGE_EVENTS as memory events of the driver
/// (`alloc`, `free`) and each allocation as a storage into an empty session. `allocated` counts
/// device memory from the start of the trace; pinned and pageable host memory is of the device
/// "host". There is no step: the format has no ops. Errors: BadInput when there is nothing of all
/// that, a column is missing, or the file is damaged.
Status importNsight(const std::string& path, SessionWriter& session);

const ImportFormat& nsightFormat();

}  // namespace hw::core
