// SPDX-License-Identifier: GPL-3.0-or-later
// The window and its pictures, as the executable uses them. No Qt in sight.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace hw::viewer {

struct ShotOptions {
    std::string session;             // a session or any importable file
    std::string view;                // one of viewNames()
    std::vector<std::string> plans;  // plan files; the first one is drawn over the recorded curve
    std::vector<std::string> with;   // recordings of the program with other batches
    std::string output;              // .png, .svg or .pdf
    std::string preset;              // "column", "page", "slide"; empty: "screen"
    int width = 0, height = 0;       // 0: the preset's, or what the view needs
    std::optional<double> scale;     // pixels of a PNG per unit of width and height
    bool light = false;
    std::optional<std::int64_t> step;       // the last complete one otherwise
    std::string device;                     // of a trace without a step: whose memory
    std::vector<std::string> planners;      // that views show; the usual ones otherwise
    bool bySteps = false, byBytes = false;  // the axes of trace
    std::string select;                     // words: the first that they find is selected
};

struct ShotSummary {
    std::string file;
    int width = 0, height = 0;  // of the picture: pixels of a PNG, units of an SVG or PDF
};

/// Draws one view into a file; needs no display. Errors: Usage (unknown view, size or format),
/// BadInput (the session or a plan cannot be used, the file cannot be written).
core::Result<ShotSummary> shot(const ShotOptions& options);

struct ReportOptions {
    std::string session;
    std::vector<std::string> plans;     // plan files; the first one is the chosen plan
    std::vector<std::string> with;      // recordings of the program with other batches
    std::string output;                 // .html or .pdf
    std::optional<std::int64_t> step;   // the last complete one otherwise
    std::vector<std::string> planners;  // of the frontier; the usual ones otherwise
    std::optional<double> ratio;        // budget as a share of the peak; the plan's, or 0.6
};

struct ReportSummary {
    std::string file;
    int width = 0;              // of the page, at 96 pixels an inch
    std::optional<int> height;  // of a PDF's page; an HTML page is as long as it is
};

/// Writes the story of a step: its peak, who holds it, what less memory costs, the chosen plan.
/// Plans where the session holds none; needs no display. Errors: as shot().
core::Result<ReportSummary> report(const ReportOptions& options);

/// Opens the window and returns its exit status when it is closed. An empty session shows how to
/// get one. Usage: there is no display.
core::Result<int> runWindow(int& argc, char** argv, const std::string& session,
                            const std::vector<std::string>& plans,
                            const std::vector<std::string>& with);

/// "timeline", "whatif", …, "window".
std::vector<std::string> viewNames();

}  // namespace hw::viewer
