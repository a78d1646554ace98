// SPDX-License-Identifier: GPL-3.0-or-later
// Figures as people read them: one unit and one number of digits across an axis or a table.
#pragma once

#include <QString>
#include <string_view>

#include "core/base/units.h"
#include "core/graph/training_graph.h"

namespace hw::viewer {

/// A decimal unit (GB, MB, kB, B) chosen once for everything that is shown together.
struct SizeUnit {
    double bytes = 1;  // of one unit
    QString name = QStringLiteral("B");
    int digits = 0;  // after the point

    /// The unit in which `largest` has at least one digit before the point.
    static SizeUnit fitting(core::Bytes largest);

    double value(core::Bytes size) const { return static_cast<double>(size.count()) / bytes; }
    QString number(core::Bytes size) const;  // "10.06"
    QString text(core::Bytes size) const;    // "10.06 GB"
};

/// Milliseconds (seconds, minutes, or events), with digits that suit the longest time shown.
struct TimeFormat {
    int digits = 1;
    QString unit = QStringLiteral("ms");  // "events" where events have no times
    double scale = 1;  // milliseconds of one unit; an event counts as a millisecond

    /// Of axes, which count milliseconds and change to what is longer by themselves.
    QString axisUnit() const { return scale > 1 ? QStringLiteral("ms") : unit; }

    static TimeFormat fitting(core::Nanoseconds longest);

    QString number(core::Nanoseconds time) const;  // "291.9"
    QString text(core::Nanoseconds time) const;    // "291.9 ms"
};

double milliseconds(core::Nanoseconds time);
core::Nanoseconds nanoseconds(double milliseconds);

QString percentText(double ratio, int digits = 0);  // 0.5 → "50 %"
QString overheadText(double overhead);              // 1.0898 → "+8.98 %"
QString secondsText(double seconds);                // "0.01 s"
/// "aten::convolution_backward" → "convolution_backward"
QString shortOpName(std::string_view name);
/// "reduce_kernel" of "void at::native::reduce_kernel<512, 1, …>(…)".
QString shortKernelName(std::string_view name);
/// "activation"; "uncategorised" where nothing says what the bytes are for.
QString categoryText(core::Category category);
QString toQString(std::string_view text);

}  // namespace hw::viewer
