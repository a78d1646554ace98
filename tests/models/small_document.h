// SPDX-License-Identifier: GPL-3.0-or-later
// The small graph as a document, and plans for it by hand.
#pragma once

#include <memory>
#include <utility>

#include "tests/models/test_graphs.h"
#include "viewer/models/document.h"

namespace hw::viewer::samples {

inline std::shared_ptr<Document> smallDocument() {
    auto document = std::make_shared<Document>();
    document->graph = smallGraph();
    document->baseline = core::baselineSchedule(document->graph);
    document->judged = core::evaluate(document->graph, document->baseline);
    document->curve = stepCurve(document->graph, document->baseline);
    document->size = SizeUnit::fitting(document->peak());
    document->time = TimeFormat::fitting(document->judged.time);
    return document;
}

inline PlanPointer planOf(const Document& document, core::Schedule schedule) {
    auto plan = std::make_shared<PlanEntry>();
    plan->planner = QStringLiteral("by hand");
    plan->curve = stepCurve(document.graph, schedule);
    plan->schedule = std::move(schedule);
    return plan;
}

}  // namespace hw::viewer::samples
