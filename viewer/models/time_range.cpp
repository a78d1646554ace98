// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/time_range.h"

#include <QObject>
#include <QStringList>
#include <algorithm>

namespace hw::viewer {
namespace {

using core::Nanoseconds;

void extend(std::optional<TimeRange>& range, Nanoseconds begin, Nanoseconds end) {
    if (!range) range = TimeRange{begin, end};
    range->begin = std::min(range->begin, begin);
    range->end = std::max(range->end, end);
}

}  // namespace

// What is there at the start came before it, and what is left at the end is not freed.
RangeFigures measure(const Document& document, const StepCurve& curve, const TimeRange& range) {
    RangeFigures figures;
    figures.time = range.end - range.begin;
    const std::size_t last = curve.momentAt(range.end);
    for (std::size_t i = curve.momentAt(range.begin); i <= last; ++i) {
        const Moment& moment = curve.moments[i];
        if (moment.total <= figures.highest) continue;
        figures.highest = moment.total;
        figures.op = moment.op;
    }
    if (document.knowsPeakOnly()) return figures;
    const std::vector<Moment>& moments = document.curve.moments;
    const auto within = [&](Nanoseconds at) { return range.begin <= at && at <= range.end; };
    figures.allocated = figures.freed = core::Bytes(0);
    for (const Lifetime& life : document.curve.lifetimes) {
        const core::Storage& storage = document.graph.storages[life.storage];
        const auto first = static_cast<std::size_t>(life.first),
                   end = static_cast<std::size_t>(life.last);
        const bool before = first == 0 && storage.isConstant();
        if (!before && within(moments[first].begin)) *figures.allocated += storage.bytes;
        const bool stays = storage.aliveAtEnd || end + 1 == moments.size();
        if (!stays && within(moments[end].end)) *figures.freed += storage.bytes;
    }
    return figures;
}

QString rangeText(const Document& document, const RangeFigures& figures) {
    QStringList parts{document.time.text(figures.time)};
    if (figures.allocated && figures.freed)
        parts << QObject::tr("allocated %1, freed %2")
                     .arg(document.size.text(*figures.allocated),
                          document.size.text(*figures.freed));
    parts << QObject::tr("highest %1").arg(document.size.text(figures.highest));
    return parts.join(QStringLiteral(" · "));
}

std::optional<TimeRange> extentOf(const Document& document, const Selection& selection) {
    const std::vector<Moment>& moments = document.curve.moments;
    std::optional<TimeRange> extent;
    if (selection.block) return TimeRange{selection.block->begin, selection.block->end};
    if (selection.kind == Selection::Kind::Tensor) {
        for (const Lifetime& life : document.curve.lifetimes)
            if (life.storage == selection.storage)
                extend(extent, moments[static_cast<std::size_t>(life.first)].begin,
                       moments[static_cast<std::size_t>(life.last)].end);
        return extent;
    }
    for (const Moment& moment : moments) {
        const bool layer =
            selection.kind == Selection::Kind::Layer && moment.op != core::kNone &&
            withinLayer(document.graph, document.graph.ops[moment.op].layer, selection.layer);
        const bool op = selection.kind == Selection::Kind::Op && moment.op == selection.op &&
                        moment.op != core::kNone;
        if (layer || op) extend(extent, moment.begin, moment.end);
    }
    return extent;
}

TimeRange withSurroundings(const Document& document, const TimeRange& extent) {
    const Nanoseconds step = document.curve.time, length = extent.end - extent.begin;
    constexpr int kLeast = 100;  // of the step: a short op keeps its neighbours
    const Nanoseconds around(
        std::max(length.count() / 8, (step.count() / kLeast - length.count()) / 2));
    return {std::max(Nanoseconds(0), extent.begin - around), std::min(step, extent.end + around)};
}

}  // namespace hw::viewer
