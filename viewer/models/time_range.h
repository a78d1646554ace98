// SPDX-License-Identifier: GPL-3.0-or-later
// Stretches of the recorded step: how much memory comes and goes in one, and where a selection
// lies.
#pragma once

#include <QString>
#include <optional>

#include "viewer/models/document.h"
#include "viewer/models/selection.h"

namespace hw::viewer {

struct RangeFigures {
    core::Nanoseconds time;
    // Of storages that come into being, and that go, within it; not known where only the peak's
    // storages are loaded (Document::knowsPeakOnly).
    std::optional<core::Bytes> allocated, freed;
    core::Bytes highest;             // total while it lasts
    core::OpIndex op = core::kNone;  // that runs then
};

/// Of the recorded step; `curve` is the document's own or a window of its series. Requires moments.
RangeFigures measure(const Document& document, const StepCurve& curve, const TimeRange& range);

/// "12.3 ms · allocated 45.1 MB, freed 32.0 MB · highest 102.4 MB".
QString rangeText(const Document& document, const RangeFigures& figures);

/// When the selection is in memory or runs: an op's moment, the life of a tensor, from the first to
/// the last op of a layer. Empty where it never is.
std::optional<TimeRange> extentOf(const Document& document, const Selection& selection);

/// The stretch around an extent that shows it with what is beside it.
TimeRange withSurroundings(const Document& document, const TimeRange& extent);

}  // namespace hw::viewer
