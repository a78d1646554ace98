// SPDX-License-Identifier: GPL-3.0-or-later
// A session's step as one document: HTML that needs nothing beside it, or PDF.
#pragma once

#include <string>

#include "core/base/result.h"
#include "viewer/export/report_content.h"

namespace hw::viewer {

/// Pixels that the text of an HTML report is at most wide.
inline constexpr int kReportWidth = 900;

/// Usage error when no report can have this name.
core::Status checkReportName(const std::string& file);

/// Writes what the workspace knows, on light paper, whatever the window's theme; with other
/// recordings of the program (DocumentLoader::records()) how large a batch fits, too. Errors: Usage
/// (the ending, or a document without a step), BadInput (the file cannot be written, or a recording
/// is of another program).
core::Status saveReport(Workspace& workspace, const std::string& file);

/// The parts of saveReport() that differ by format.
QByteArray reportHtml(const Report& report);
core::Status saveReportPdf(const Report& report, const std::string& file);

}  // namespace hw::viewer
