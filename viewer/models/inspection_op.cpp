// SPDX-License-Identifier: GPL-3.0-or-later
// An op, a layer, the step: what they take, and what a plan does with them.
#include <QObject>
#include <algorithm>
#include <utility>

#include "viewer/models/fact_writer.h"
#include "viewer/models/layer_model.h"
#include "viewer/models/live_set.h"

namespace hw::viewer {
namespace {

using core::kNone;

const PlanChange* changeOf(const FactWriter& facts, core::OpIndex op) {
    const auto& changes = *facts.plan().changes;
    const auto found = std::find_if(changes.begin(), changes.end(),
                                    [&](const PlanChange& each) { return each.op == op; });
    return found == changes.end() ? nullptr : &*found;
}

void tellCost(FactWriter& facts, core::OpIndex index) {
    const Document& document = facts.document();
    const core::Op& op = facts.graph().ops[index];
    const StepCurve& curve = document.curve;
    const auto moment = std::find_if(curve.moments.begin(), curve.moments.end(),
                                     [&](const Moment& each) { return each.op == index; });
    if (moment != curve.moments.end()) {
        facts.add(QObject::tr("begins at"), document.time.text(moment->begin));
        facts.add(
            QObject::tr("live while it runs"),
            QObject::tr("%1, %2").arg(facts.bytes(moment->total), facts.share(moment->total)));
    }
    if (!document.plannable) return;
    facts.add(QObject::tr("time"),
              QObject::tr("%1 (%2)").arg(facts.time(op.time),
                                         toQString(core::costSetName(facts.graph().costs))));
    if (op.workspace > core::Bytes(0))
        facts.add(QObject::tr("workspace"), facts.bytes(op.workspace));
    if (op.random) facts.add(QObject::tr("random"), QObject::tr("it draws from a generator"));
    if (op.once)
        facts.add(QObject::tr("never again"),
                  QObject::tr("it works on more than what ops leave in storages"));
    if (op.viewOnly) facts.add(QObject::tr("makes"), QObject::tr("views only, no bytes"));
}

// Values wrap, names do not: a line of code is a value.
void storageFact(FactWriter& facts, core::StorageIndex storage) {
    QString name = storageName(facts.document(), storage), value = facts.storageText(storage);
    if (facts.document().bands.byLine()) std::swap(name, value);
    facts.add(name, value, {Selection::Kind::Tensor, storage});
}

void tellTensors(FactWriter& facts, const core::Op& op) {
    const core::TrainingGraph& graph = facts.graph();
    facts.group(QObject::tr("reads"));
    facts.list(op.inputs.size(),
               [&](std::size_t i) { storageFact(facts, graph.storageOf(op.inputs[i].tensor)); });
    std::vector<core::StorageIndex> made, viewed;
    for (const core::OpOutput& output : op.outputs)
        (output.makesStorage ? made : viewed).push_back(graph.storageOf(output.tensor));
    facts.group(QObject::tr("makes"));
    facts.list(made.size(), [&](std::size_t i) { storageFact(facts, made[i]); });
    facts.group(QObject::tr("returns a view of"));
    facts.list(viewed.size(), [&](std::size_t i) { storageFact(facts, viewed[i]); });
    facts.group(QObject::tr("writes in place"));
    facts.list(op.writes.size(), [&](std::size_t i) { storageFact(facts, op.writes[i].storage); });
}

// Those of a layer and its parts, the ones that save most at the peak first.
std::vector<const PlanChange*> changesOf(const FactWriter& facts, core::LayerIndex layer) {
    std::vector<const PlanChange*> found;
    for (const PlanChange& change : *facts.plan().changes)
        if (withinLayer(facts.graph(), facts.graph().ops[change.op].layer, layer))
            found.push_back(&change);
    std::stable_sort(found.begin(), found.end(), [](const PlanChange* a, const PlanChange* b) {
        return std::pair(a->savedAtPeak(), a->saved()) > std::pair(b->savedAtPeak(), b->saved());
    });
    return found;
}

void tellPlanOfLayer(FactWriter& facts, core::LayerIndex layer) {
    if (!facts.planGroup()) return;
    const std::vector<const PlanChange*> changes = changesOf(facts, layer);
    int times = 0;
    core::Nanoseconds cost;
    core::Bytes saved;
    for (const PlanChange* change : changes) {
        times += change->times;
        cost += change->cost;
        saved += change->savedAtPeak();
    }
    if (changes.empty())
        return facts.add(QObject::tr("what it does"), QObject::tr("every op as recorded"));
    facts.add(QObject::tr("recomputations"), QString::number(times));
    facts.add(QObject::tr("extra time"), facts.time(cost));
    facts.add(QObject::tr("less at the peak"), facts.bytes(saved));
    facts.list(changes.size(), [&](std::size_t i) {
        const core::Bytes bytes = changes[i]->savedAtPeak();
        facts.op(bytes > core::Bytes(0)
                     ? QObject::tr("%1 less").arg(SizeUnit::fitting(bytes).text(bytes))
                     : QObject::tr("recomputed"),
                 changes[i]->op);
    });
}

}  // namespace

void tellOp(FactWriter& facts, core::OpIndex index) {
    const core::Op& op = facts.graph().ops[index];
    facts.group(QObject::tr("op"));
    facts.add(QObject::tr("name"), toQString(op.name));
    facts.add(QObject::tr("number"),
              QObject::tr("#%1 of %2").arg(index).arg(facts.graph().ops.size()));
    if (op.phase != core::Phase::Unknown)
        facts.add(QObject::tr("phase"), toQString(core::phaseName(op.phase)));
    facts.layer(QObject::tr("layer"), op.layer);
    tellCost(facts, index);
    facts.source(facts.document().stackOfOp(index));
    if (facts.planGroup()) {
        if (const PlanChange* change = changeOf(facts, index))
            tellChange(facts, *change);
        else
            facts.add(QObject::tr("what it does"), QObject::tr("computes it once, as recorded"));
    }
    tellTensors(facts, op);
}

void tellLargest(FactWriter& facts, core::LayerIndex layer) {
    const Document& document = facts.document();
    if (document.curve.moments.empty()) return;
    facts.group(QObject::tr("largest at the peak"));
    LiveSet set = liveAt(document, document.curve, document.curve.peakMoment);
    std::erase_if(set.items, [&](const LiveItem& item) {
        return layer != kNone && !withinLayer(document.graph, item.layer, layer);
    });
    facts.list(set.items.size(), [&](std::size_t i) {
        const LiveItem& item = set.items[i];
        if (item.storage != kNone) return storageFact(facts, item.storage);
        facts.add(itemName(document, item), SizeUnit::fitting(item.bytes).text(item.bytes),
                  item.op == kNone ? Target{} : Target{Selection::Kind::Op, item.op});
    });
}

void tellLayer(FactWriter& facts, core::LayerIndex layer) {
    const LayerTree tree = layerTree(facts.document());
    facts.group(QObject::tr("layer"));
    facts.add(QObject::tr("name"), layerText(facts.graph(), layer));
    facts.add(QObject::tr("type"), toQString(facts.graph().layers[layer].type));
    facts.layer(QObject::tr("part of"), facts.graph().layers[layer].parent);
    const auto found = std::find_if(tree.shares.begin(), tree.shares.end(),
                                    [&](const LayerShare& share) { return share.layer == layer; });
    if (found != tree.shares.end()) {
        facts.add(
            QObject::tr("at the peak"),
            QObject::tr("%1, %2").arg(facts.bytes(found->atPeak), facts.share(found->atPeak)));
        facts.add(QObject::tr("saved for backward"), facts.bytes(found->saved));
        facts.add(QObject::tr("ops"), QString::number(found->ops));
        if (tree.phases) {
            facts.add(QObject::tr("forward"), facts.time(found->forward));
            facts.add(QObject::tr("backward"), facts.time(found->backward));
        }
        tellPlanOfLayer(facts, layer);
        facts.group(QObject::tr("parts"));
        facts.list(found->parts.size(), [&](std::size_t i) {
            const LayerShare& part = tree.shares[static_cast<std::size_t>(found->parts[i])];
            facts.add(part.name, SizeUnit::fitting(part.atPeak).text(part.atPeak),
                      {Selection::Kind::Layer, part.layer});
        });
    }
    tellLargest(facts, layer);
}

void tellStep(FactWriter& facts) {
    const Document& document = facts.document();
    facts.group(document.plannable ? QObject::tr("step") : QObject::tr("trace"));
    facts.add(QObject::tr("session"), QString::fromStdString(document.path));
    facts.add(QObject::tr("command"), document.command);
    if (document.plannable)
        facts.add(QObject::tr("number"),
                  QObject::tr("%1 (%2 recorded)").arg(document.step).arg(document.steps));
    facts.add(QObject::tr("device"), document.device);
    facts.add(QObject::tr("peak"), document.hasMemory() ? facts.bytes(document.peak())
                                                        : QObject::tr("no memory was recorded"));
    if (!document.curve.moments.empty())
        facts.op(QObject::tr("peak at"), document.curve.moments[document.curve.peakMoment].op);
    facts.add(QObject::tr("time"), document.time.text(document.curve.time));
    if (document.plannable) {
        facts.add(QObject::tr("no plan below"), facts.bytes(document.floor));
        facts.add(QObject::tr("there before the step"), facts.bytes(facts.graph().constantBytes()));
    }
    if (document.capacity) facts.add(QObject::tr("device memory"), facts.bytes(*document.capacity));
    facts.add(QObject::tr("ops"), QString::number(facts.graph().ops.size()));
    facts.add(QObject::tr("storages"), QString::number(document.storages));
    if (facts.planGroup()) {
        const PlanEntry& plan = *facts.plan().plan;
        facts.add(QObject::tr("budget"), facts.bytes(plan.budget));
        facts.add(QObject::tr("peak"), facts.bytes(plan.peak));
        facts.add(QObject::tr("step time"), overheadText(plan.overhead));
        facts.add(QObject::tr("ops recomputed"), QString::number(plan.recomputedOps));
    }
    tellLargest(facts, kNone);
    facts.group(QObject::tr("not recorded"));
    facts.list(document.gapRows.size(), [&](std::size_t i) {
        facts.add(toQString(document.gapRows[i].what), toQString(document.gapRows[i].why));
    });
}

}  // namespace hw::viewer
