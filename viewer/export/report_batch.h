// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "viewer/export/report_content.h"
#include "viewer/models/batch_study.h"

namespace hw::viewer {

/// How large a batch fits, from the document and the other recordings of its program; everything
/// but the picture.
ReportSection batchSection(const BatchResults& results);

}  // namespace hw::viewer
