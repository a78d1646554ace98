// SPDX-License-Identifier: GPL-3.0-or-later
// What a document says of its ops and storages.
#include <QStringList>
#include <algorithm>

#include "viewer/models/document.h"

namespace hw::viewer {

QString placeOf(const core::TrainingGraph& graph, core::OpIndex index) {
    if (index == core::kNone) return {};
    const core::Op& op = graph.ops[index];
    QStringList parts;
    if (op.phase != core::Phase::Unknown) parts << toQString(core::phaseName(op.phase));
    const QString layer = layerText(graph, op.layer);
    // The layer that holds all others says nothing.
    const bool named = !layer.isEmpty() && layer != QLatin1String("(root)");
    parts << (named ? layer : shortOpName(op.name));
    return parts.join(QStringLiteral(" · "));
}

TensorInfo Document::tensorInfo(core::StorageIndex storage) const {
    if (storage == core::kNone) return {};
    const core::ShortList<core::TensorIndex>& own = graph.storages[storage].tensors;
    return own.empty() ? TensorInfo{} : viewInfo(own.front());
}

TensorInfo Document::viewInfo(core::TensorIndex tensor) const {
    const auto at = static_cast<std::size_t>(tensor);
    return tensor != core::kNone && at < tensors.size() ? tensors[at] : TensorInfo{};
}

std::int64_t Document::stackOfOp(core::OpIndex op) const {
    return op == core::kNone ? core::CallStacks::kNone : stacks.ofOp(graph.ops[op].sessionId);
}

std::int64_t Document::stackOf(core::StorageIndex storage) const {
    return storage == core::kNone ? core::CallStacks::kNone
                                  : stacks.ofStorage(graph.storages[storage].sessionId);
}

QString Document::kindOf(core::StorageIndex storage) const {
    const core::Storage& of = graph.storages[storage];
    const QString place = bands.placeOf(of.sessionId);
    return !bands.byLine()   ? categoryText(of.category)
           : place.isEmpty() ? bands.name(kUnknownBand)
                             : place;
}

QString Document::lineOf(core::StorageIndex storage) const {
    const core::SourceFrameRow* line = stacks.line(stackOf(storage));
    return line ? toQString(core::frameText(*line)) : QString();
}

std::vector<const core::SourceFrameRow*> Document::programFrames(std::int64_t stack) const {
    std::vector<const core::SourceFrameRow*> own = stacks.frames(stack);
    std::erase_if(own, [](const core::SourceFrameRow* frame) { return frame->framework; });
    std::reverse(own.begin(), own.end());
    return own;
}

QString Document::stackText(core::StorageIndex storage) const {
    QStringList lines;
    for (const core::SourceFrameRow* frame : programFrames(stackOf(storage)))
        lines << QStringLiteral("%1:%2 %3")
                     .arg(toQString(frame->file))
                     .arg(frame->line)
                     .arg(toQString(frame->function));
    return lines.join(QLatin1Char('\n'));
}

QString Document::whyNoMemory() const {
    const auto said = std::find_if(gapRows.begin(), gapRows.end(),
                                   [](const core::GapRow& gap) { return gap.what == "memory"; });
    const QString none = QObject::tr("no memory was recorded");
    return said == gapRows.end() ? none : QStringLiteral("%1: %2").arg(none, toQString(said->why));
}

QString Document::peakPlace() const {
    return curve.moments.empty() ? QString() : placeOf(graph, curve.moments[curve.peakMoment].op);
}

}  // namespace hw::viewer
