// SPDX-License-Identifier: GPL-3.0-or-later
// The lines over the recorded curve: the plan's, what a training under it holds, and what a layer
// does.
#include <algorithm>
#include <cmath>
#include <utility>

#include "viewer/plots/timeline_plot.h"

namespace hw::viewer {

void TimelinePlot::setPlan(const PlanPointer& plan) {
    const bool whole = showsWhole();
    plan_ = plan;
    linesChanged(whole);
}

void TimelinePlot::setLive(std::shared_ptr<const StepCurve> curve) {
    const bool whole = showsWhole();
    live_ = curve && !curve->moments.empty() ? std::move(curve) : nullptr;
    linesChanged(whole);
}

void TimelinePlot::setOther(const DocumentPointer& other) {
    const bool whole = showsWhole();
    other_ = other && !other->curve.moments.empty() ? other : nullptr;
    linesChanged(whole);
}

void TimelinePlot::linesChanged(bool showedWhole) {
    if (showedWhole) return resetZoom();
    rescale();
    rebuild();
}

void TimelinePlot::rebuildLine(QCPGraph& line, const StepCurve* curve, int columns) {
    const QCPRange seen = visibleTime();
    const core::Nanoseconds from = nanoseconds(seen.lower), to = nanoseconds(seen.upper);
    const auto key = [&](core::Nanoseconds time) {
        return std::clamp(milliseconds(time), seen.lower, seen.upper);
    };
    QVector<QCPGraphData> data;
    if (curve) {
        const std::vector<std::size_t> points = visibleMoments(*curve, from, to, columns);
        for (const std::size_t i : points) {
            const Moment& moment = curve->moments[i];
            if (moment.end < from || moment.begin > to) continue;
            data.push_back({key(moment.begin), document_->size.value(moment.total)});
        }
        if (!data.isEmpty())
            data.push_back({key(curve->moments[points.back()].end), data.back().value});
    }
    line.data()->set(data, true);
}

void TimelinePlot::measureHeld() {
    held_.clear();
    if (!document_ || selection_.kind != Selection::Kind::Layer) return;
    const core::TrainingGraph& graph = document_->graph;
    const std::vector<Moment>& moments = document_->curve.moments;
    std::vector<core::Bytes> change(moments.size() + 1);
    for (const Lifetime& lifetime : document_->curve.lifetimes) {
        const core::Storage& storage = graph.storages[lifetime.storage];
        if (!withinLayer(graph, storage.layer, selection_.layer)) continue;
        change[static_cast<std::size_t>(lifetime.first)] += storage.bytes;
        change[static_cast<std::size_t>(lifetime.last) + 1] -= storage.bytes;
    }
    core::Bytes now;
    for (std::size_t i = 0; i < moments.size(); ++i) {
        now += change[i];
        const core::OpIndex op = moments[i].op;
        const bool own =
            op != core::kNone && withinLayer(graph, graph.ops[op].layer, selection_.layer);
        held_.push_back(now + (own ? graph.ops[op].workspace : core::Bytes(0)));
    }
}

// The highest of each column, so that none is lost.
void TimelinePlot::rebuildHeld(core::Nanoseconds from, core::Nanoseconds to, int columns) {
    QVector<QCPGraphData> data;
    if (!held_.empty()) {
        const StepCurve& curve = document_->curve;
        const double width = std::max(1.0, static_cast<double>((to - from).count()) / columns);
        const std::size_t last = curve.momentAt(to);
        double column = -1;
        for (std::size_t i = curve.momentAt(from); i <= last; ++i) {
            const core::Nanoseconds begin = std::max(curve.moments[i].begin, from);
            const double size = document_->size.value(held_[i]);
            if (const double own = std::floor(static_cast<double>((begin - from).count()) / width);
                own != column || data.isEmpty()) {
                data.push_back({milliseconds(begin), size});
                column = own;
            } else {
                data.back().value = std::max(data.back().value, size);
            }
        }
        data.push_back({milliseconds(std::min(curve.moments[last].end, to)), data.back().value});
    }
    heldGraph_->data()->set(data, true);
}

}  // namespace hw::viewer
