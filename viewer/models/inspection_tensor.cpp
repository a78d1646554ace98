// SPDX-License-Identifier: GPL-3.0-or-later
// A tensor: what it is, why it is there and for how long, who needs it, what a plan does with it.
#include <QObject>
#include <QStringList>
#include <algorithm>
#include <span>

#include "viewer/models/fact_writer.h"
#include "viewer/models/live_set.h"

namespace hw::viewer {
namespace {

using core::kNone;

bool backward(const core::TrainingGraph& graph, core::OpIndex op) {
    return graph.ops[op].phase == core::Phase::Backward;
}

// Forward computed it and backward reads it.
bool isSaved(const core::TrainingGraph& graph, const core::Storage& storage) {
    return !storage.isConstant() && !backward(graph, storage.creator) &&
           graph.ops[storage.creator].phase != core::Phase::Optimizer &&
           std::any_of(storage.readers.begin(), storage.readers.end(),
                       [&](core::OpIndex reader) { return backward(graph, reader); });
}

// "forward and backward": of these ops.
QString phasesOf(const core::TrainingGraph& graph, std::span<const core::OpIndex> ops) {
    QStringList names;
    for (const core::OpIndex op : ops) {
        const QString name = toQString(core::phaseName(graph.ops[op].phase));
        if (graph.ops[op].phase != core::Phase::Unknown && !names.contains(name)) names << name;
    }
    return names.join(QObject::tr(" and "));
}

// What the step shows of it: where it comes from, and who reads and writes it.
QString whyCategory(const Document& document, const core::Storage& storage) {
    const core::TrainingGraph& graph = document.graph;
    if (!document.plannable) return {};
    QStringList parts;
    const QString made =
        storage.isConstant() ? QString() : phasesOf(graph, std::span(&storage.creator, 1));
    if (storage.isConstant())
        parts << QObject::tr("there before the step");
    else if (!made.isEmpty())
        parts << QObject::tr("made in %1").arg(made);
    const QString read = phasesOf(graph, storage.readers),
                  written = phasesOf(graph, storage.writers);
    if (!read.isEmpty()) parts << QObject::tr("read in %1").arg(read);
    if (!written.isEmpty()) parts << QObject::tr("written in %1").arg(written);
    if (storage.aliveAtEnd) parts << QObject::tr("held when the step ends");
    return parts.join(QStringLiteral(", "));
}

void tellIdentity(FactWriter& facts, core::StorageIndex index) {
    const Document& document = facts.document();
    const core::Storage& storage = facts.graph().storages[index];
    facts.group(QObject::tr("tensor"));
    facts.add(QObject::tr("name"), storageName(document, index));
    facts.add(QObject::tr("size"), facts.bytes(storage.bytes));
    const TensorInfo info = document.tensorInfo(index);
    facts.add(QObject::tr("shape"), info.shape);
    facts.add(QObject::tr("type"), info.dtype);
    if (!document.bands.byLine())
        facts.add(QObject::tr("category"), categoryText(storage.category));
    facts.add(QObject::tr("because"), whyCategory(document, storage));
    facts.layer(QObject::tr("layer"), storage.layer);
    facts.op(QObject::tr("made by"), storage.creator);
    facts.add(QObject::tr("storage"),
              QObject::tr("%1 of %2").arg(index).arg(facts.graph().storages.size()));
}

bool heldAtPeak(const StepCurve& curve, core::StorageIndex storage) {
    const auto peak = static_cast<std::int32_t>(curve.peakMoment);
    return std::any_of(curve.lifetimes.begin(), curve.lifetimes.end(), [&](const Lifetime& life) {
        return life.storage == storage && life.first <= peak && peak <= life.last;
    });
}

QString held(bool is, const FactWriter& facts, core::StorageIndex storage) {
    return is ? QObject::tr("held, %1").arg(facts.share(facts.graph().storages[storage].bytes))
              : QObject::tr("not held");
}

QString beforeText(const Document& document) {
    return document.plannable ? QObject::tr("before the step") : QObject::tr("before the trace");
}
QString endText(const Document& document) {
    return document.plannable ? QObject::tr("the end of the step")
                              : QObject::tr("the end of the trace");
}

void tellLife(FactWriter& facts, core::StorageIndex index) {
    const Document& document = facts.document();
    const StepCurve& curve = document.curve;
    const core::Storage& storage = facts.graph().storages[index];
    if (curve.moments.empty()) return;
    facts.group(QObject::tr("life"));
    core::Nanoseconds whole;
    core::OpIndex freed = kNone;
    for (const Lifetime& life : curve.lifetimes) {
        if (life.storage != index) continue;
        const Moment &first = curve.moments[static_cast<std::size_t>(life.first)],
                     &last = curve.moments[static_cast<std::size_t>(life.last)];
        const auto at = [&](core::Nanoseconds time, core::OpIndex op) {
            const QString when = document.time.text(time);
            return op == kNone ? when : QStringLiteral("%1 · %2").arg(when, facts.opName(op));
        };
        const auto target = [](core::OpIndex op) {
            return op == kNone ? Target{} : Target{Selection::Kind::Op, op};
        };
        const bool before = storage.isConstant() && life.first == 0;
        facts.add(QObject::tr("from"), before ? beforeText(document) : at(first.begin, first.op),
                  before ? Target{} : target(first.op));
        const bool stays = static_cast<std::size_t>(life.last) + 1 == curve.moments.size();
        facts.add(QObject::tr("until"), stays ? endText(document) : at(last.end, last.op),
                  stays ? Target{} : target(last.op));
        whole += last.end - first.begin;
        freed = stays ? kNone : last.op;
    }
    const QString share = percentText(ratio(whole, curve.time), 1);
    facts.add(QObject::tr("for"),
              document.plannable
                  ? QObject::tr("%1, %2 of the step").arg(facts.time(whole), share)
                  : QObject::tr("%1, %2 of the trace").arg(facts.time(whole), share));
    const core::OpIndex last = lastUser(storage);
    if (!storage.aliveAtEnd) facts.op(QObject::tr("needed last by"), last);
    if (freed != kNone && last != kNone && freed > last)
        facts.add(QObject::tr("held in vain"),
                  QObject::tr("through %1 ops after its last use").arg(freed - last));
    facts.add(QObject::tr("at the peak"), held(heldAtPeak(curve, index), facts, index));
}

void tellOps(FactWriter& facts, const QString& title, std::span<const core::OpIndex> ops) {
    facts.group(title);
    facts.list(ops.size(), [&](std::size_t i) {
        facts.op(toQString(core::phaseName(facts.graph().ops[ops[i]].phase)), ops[i]);
    });
}

void tellUsers(FactWriter& facts, const core::Storage& storage) {
    const bool saved = isSaved(facts.graph(), storage);
    std::vector<core::OpIndex> because, readers;
    for (const core::OpIndex reader : storage.readers)
        (saved && backward(facts.graph(), reader) ? because : readers).push_back(reader);
    tellOps(facts, QObject::tr("saved for backward because of"), because);
    tellOps(facts, QObject::tr("read by"), readers);
    tellOps(facts, QObject::tr("written by"), storage.writers);
}

// The first tensor came with the storage.
void tellViews(FactWriter& facts, const core::Storage& storage) {
    facts.group(QObject::tr("views of it"));
    if (storage.tensors.size() < 2) return;
    facts.list(storage.tensors.size() - 1, [&](std::size_t i) {
        const core::TensorIndex view = storage.tensors[i + 1];
        const core::OpIndex maker = facts.graph().tensors[view].creator;
        const QString shape = facts.document().viewInfo(view).shape;
        if (maker == kNone) return facts.add(QObject::tr("before the step"), shape);
        facts.add(shape, facts.opName(maker), {Selection::Kind::Op, maker});
    });
}

void tellPlan(FactWriter& facts, core::StorageIndex index) {
    if (!facts.planGroup()) return;
    const PlanEntry& plan = *facts.plan().plan;
    bool changed = false;
    for (const PlanChange& change : *facts.plan().changes) {
        std::vector<Eviction> mine = change.evictions;
        std::erase_if(mine, [&](const Eviction& each) { return each.storage != index; });
        if (mine.empty()) continue;
        changed = true;
        PlanChange own = change;  // what it does to this one
        own.evictions = std::move(mine);
        const core::ActionTraits* const standIn = change.standIn();
        facts.op(standIn ? QObject::tr("%1 after").arg(QObject::tr(standIn->leaves))
                         : QObject::tr("recomputed by"),
                 change.op);
        tellChange(facts, own);
    }
    const core::Storage& storage = facts.graph().storages[index];
    if (!changed)
        facts.add(QObject::tr("what it does"),
                  storage.isConstant()
                      ? QObject::tr("nothing: no op of the step computes it, so none can again")
                      : QObject::tr("computed once and kept until its last use"));
    facts.add(QObject::tr("at the plan's peak"), held(heldAtPeak(plan.curve, index), facts, index));
}

}  // namespace

void tellBlock(FactWriter& facts, const BlockFacts& block) {
    const Document& document = facts.document();
    facts.group(QObject::tr("block of memory"));
    facts.add(QObject::tr("allocated by"), document.bands.placeOf(block.storage));
    facts.add(QObject::tr("size"), facts.bytes(block.bytes));
    facts.add(QObject::tr("address"), QStringLiteral("0x") + QString::number(block.address, 16));
    facts.add(QObject::tr("from"), block.begin == core::Nanoseconds(0)
                                       ? QObject::tr("the start of the trace, or before")
                                       : document.time.text(block.begin));
    facts.add(QObject::tr("until"), block.end >= document.curve.time
                                        ? QObject::tr("the end of the trace")
                                        : document.time.text(block.end));
    facts.source(document.stacks.ofStorage(block.storage));
}

void tellTensor(FactWriter& facts, core::StorageIndex storage) {
    tellIdentity(facts, storage);
    facts.source(facts.document().stackOf(storage));
    tellPlan(facts, storage);
    tellLife(facts, storage);
    tellUsers(facts, facts.graph().storages[storage]);
    tellViews(facts, facts.graph().storages[storage]);
}

}  // namespace hw::viewer
