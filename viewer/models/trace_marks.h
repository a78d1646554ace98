// SPDX-License-Identifier: GPL-3.0-or-later
// The level of detail of memory traces: what to draw of one in a given number of pixels.
#pragma once

#include <vector>

#include "viewer/models/plan_trace.h"

namespace hw::viewer {

/// What each axis counts.
struct TraceAxes {
    bool steps = false;  // across: steps of the schedule, not milliseconds
    bool bytes = false;  // up: bytes, so that every row is as high as its storage is large
};

/// The visible part of a trace and the pixels that it has.
struct TraceView {
    TraceAxes axes;
    double left = 0, right = 1;  // in milliseconds or steps
    double low = 0, high = 1;    // in rows or bytes from the first
    int width = 0, height = 0;   // pixels
};

/// A rectangle in pixels from the left and the low edge. Where several rows or stretches share it,
/// `cover` is the share of its area that is in memory and `rematerialized` the share of that which
/// was rematerialized; both in steps of a quarter, never rounded down to none.
struct TraceMark {
    double left = 0, low = 0, right = 0, high = 0;
    core::ActionKind by = core::ActionKind::Compute;  // of its bar, where it stands for one
    int cover = kWhole;
    int rematerialized = 0;

    static constexpr int kWhole = 4;
};

/// What to draw: a bar by itself where its row is at least a pixel high, otherwise the merged
/// pixels of the rows that share them, so that the work is bounded by the picture's size and no
/// stretch is lost.
std::vector<TraceMark> visibleMarks(const PlanTrace& trace, const TraceView& view);

}  // namespace hw::viewer
