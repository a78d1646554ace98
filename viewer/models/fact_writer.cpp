// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/fact_writer.h"

#include <QObject>
#include <QStringList>
#include <algorithm>

#include "viewer/models/live_set.h"
#include "viewer/models/time_range.h"

namespace hw::viewer {

void FactWriter::add(const QString& name, const QString& value, Target target) {
    if (!value.isEmpty()) groups_.back().facts.push_back({name, value, target});
}

void FactWriter::op(const QString& name, core::OpIndex op) {
    if (op != core::kNone) add(name, opName(op), {Selection::Kind::Op, op});
}

void FactWriter::layer(const QString& name, core::LayerIndex layer) {
    if (layer != core::kNone) add(name, layerText(graph_, layer), {Selection::Kind::Layer, layer});
}

void FactWriter::source(std::int64_t stack) {
    const auto place = [](const core::SourceFrameRow& frame) {
        return QStringLiteral("%1:%2").arg(toQString(frame.file)).arg(frame.line);
    };
    const core::SourceFrameRow* line = document_.stacks.line(stack);
    if (!line) return;
    group(QObject::tr("source line"));
    add(toQString(line->function), place(*line));
    const std::vector<const core::SourceFrameRow*> calls = document_.programFrames(stack);
    for (std::size_t i = calls.size() > 0 && calls.front() == line ? 1 : 0; i < calls.size(); ++i)
        add(QObject::tr("called by %1").arg(toQString(calls[i]->function)), place(*calls[i]));
}

bool FactWriter::planGroup() {
    if (!isPlanned(plan_.plan)) return false;
    group(QObject::tr("plan: %1 at %2")
              .arg(plan_.plan->planner, percentText(ratio(plan_.plan->budget, document_.peak()))));
    return true;
}

std::vector<FactGroup> FactWriter::take() {
    std::erase_if(groups_, [](const FactGroup& group) { return group.facts.empty(); });
    return std::move(groups_);
}

QString FactWriter::opName(core::OpIndex op) const {
    return QStringLiteral("#%1 %2").arg(op).arg(shortOpName(graph_.ops[op].name));
}

QString FactWriter::storageText(core::StorageIndex storage) const {
    const core::Bytes size = graph_.storages[storage].bytes;
    QStringList parts{SizeUnit::fitting(size).text(size)};
    const TensorInfo info = document_.tensorInfo(storage);
    for (const QString& part : {info.shape, info.dtype})
        if (!part.isEmpty()) parts << part;
    return parts.join(QStringLiteral(" · "));
}

QString FactWriter::bytes(core::Bytes size) {
    const SizeUnit unit = SizeUnit::fitting(size);
    if (unit.bytes == 1) return QObject::tr("%1 bytes").arg(size.count());
    return QObject::tr("%1 (%2 bytes)").arg(unit.text(size)).arg(size.count());
}

QString FactWriter::time(core::Nanoseconds time) const {
    const bool counted = document_.time.unit == QLatin1String("events");
    return counted ? document_.time.text(time) : TimeFormat::fitting(time).text(time);
}

QString FactWriter::share(core::Bytes size) const {
    return QObject::tr("%1 of the peak").arg(percentText(ratio(size, document_.peak()), 1));
}

void tellChange(FactWriter& facts, const PlanChange& change) {
    if (change.times > 0)
        facts.add(QObject::tr("recomputed"), change.times == 1
                                                 ? QObject::tr("once")
                                                 : QObject::tr("%1 times").arg(change.times));
    if (change.implementation)
        facts.add(QObject::tr("runs as"), toQString(change.implementation->name));
    if (change.times > 0 || change.implementation)
        facts.add(QObject::tr("extra time"), facts.time(change.cost));
    if (change.measuredCost)
        facts.add(QObject::tr("measured extra time"), facts.time(*change.measuredCost));
    facts.add(QObject::tr("why"), reasonText(facts.document(), *facts.plan().plan, change));
}

QString factsAsText(const std::vector<FactGroup>& groups) {
    QStringList lines;
    for (const FactGroup& group : groups) {
        lines << group.title;
        for (const Fact& fact : group.facts)
            lines << QStringLiteral("\t%1\t%2").arg(fact.name, fact.value);
    }
    return lines.join(QLatin1Char('\n'));
}

std::vector<FactGroup> inspect(const Document& document, const Selection& selection,
                               const InspectedPlan& plan, const std::optional<TimeRange>& range) {
    FactWriter facts(document, plan);
    if (range && !document.curve.moments.empty()) {
        const RangeFigures figures = measure(document, document.curve, *range);
        facts.group(QObject::tr("selected time"));
        facts.add(QObject::tr("duration"), facts.time(figures.time));
        if (figures.allocated) facts.add(QObject::tr("allocated"), facts.bytes(*figures.allocated));
        if (figures.freed) facts.add(QObject::tr("freed"), facts.bytes(*figures.freed));
        facts.add(QObject::tr("highest"), facts.bytes(figures.highest));
        facts.op(QObject::tr("highest at"), figures.op);
    }
    switch (selection.kind) {
        case Selection::Kind::Tensor:
            tellTensor(facts, selection.storage);
            break;
        case Selection::Kind::Op:
            tellOp(facts, selection.op);
            break;
        case Selection::Kind::Layer:
            tellLayer(facts, selection.layer);
            break;
        case Selection::Kind::Block:
            tellBlock(facts, *selection.block);
            break;
        case Selection::Kind::None:
            tellStep(facts);
            break;
    }
    return facts.take();
}

}  // namespace hw::viewer
