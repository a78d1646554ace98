// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/panel_help.h"

#include <QCoreApplication>
#include <QHash>

namespace hw::viewer {
namespace {

QString tr(const char* text) {
    return QCoreApplication::translate("help", text);
}

}  // namespace

QString panelHelp(const QString& name) {
    static const QHash<QString, const char*> texts{
        {QStringLiteral("timeline"),
         "<p>Live memory over the step, stacked by category: the filled curve is what was "
         "recorded, "
         "the line over it what the plan does. Phases, layers and ops lie below on the same axis. "
         "No zoom hides a peak.</p><p><b>+ −</b> or the wheel zoom, dragging moves, <b>0</b> shows "
         "the whole step. A click chooses the op, <b>Shift</b> and a drag a stretch of time.</p>"},
        {QStringLiteral("peak"),
         "<p>What is live at the peak: each rectangle is a tensor, as large as its bytes, within "
         "its layer. The second map is the plan's peak, on the same scale.</p><p>A click on a "
         "tensor or a layer marks it in every view.</p>"},
        {QStringLiteral("layers"),
         "<p>The layers with what they save for backward, their times and their share of the "
         "peak; columns that the recording says nothing about are left out.</p><p>A click on a "
         "layer draws what it holds in the timeline.</p>"},
        {QStringLiteral("map"),
         "<p>Tensors as rectangles over time and address; blank is free memory. With a plan it is "
         "the packed arena that a run allocates once, without one the addresses as "
         "recorded.</p>"},
        {QStringLiteral("whatif"),
         "<p>What a budget costs: extra step time of each planner over the budget. Below the "
         "dashed line no plan can be, left of the red edge nothing fits.</p><p>Move the budget "
         "with the slider, or <b>B</b> and the arrows: the cheapest known plan that fits is drawn "
         "at once, better ones replace it as they are found. A click on a point draws that "
         "plan.</p>"},
        {QStringLiteral("compare"),
         "<p>Every planner at the budget, predicted beside measured, all under one judge. The gap "
         "is to the proven lower bound.</p><p>A click draws a plan; <b>Ctrl+Enter</b> runs it and "
         "compares every result, <b>Ctrl+E</b> writes it to a file.</p>"},
        {QStringLiteral("plan"),
         "<p>What the plan that is drawn recomputes or frees early, by layer, each with its reason "
         "and with the bytes that the peak does without.</p>"},
        {QStringLiteral("sizes"),
         "<p>Where the recorded steps have inputs of different sizes: the peak over the input "
         "size, the estimate fitted to it, and the plan that each size gets within one "
         "budget.</p>"},
        {QStringLiteral("steps"),
         "<p>The recorded steps side by side. A click opens a step in all other views.</p>"},
        {QStringLiteral("trace"),
         "<p>Each storage as a line over the time of the plan: where it is kept, encoded, or made "
         "again.</p>"}};
    const auto found = texts.find(name);
    return found == texts.end() ? QString() : tr(*found);
}

}  // namespace hw::viewer
