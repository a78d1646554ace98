// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/plan_reasons.h"

#include <QObject>
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/memory/replay.h"
#include "viewer/models/live_set.h"

namespace hw::viewer {
namespace {

using core::Bytes;
using core::kNone;
using core::ReplayState;

// Who leaves after which op, and who reads it first once it is back.
class Reader : public core::ReplayListener {
public:
    Reader(const Document& document, const PlanEntry& plan)
        : graph_(document.graphOf(plan)),
          schedule_(plan.schedule),
          freedAfter_(graph_.storages.size(), kPresent),
          waiting_(graph_.storages.size()) {
        if (!document.curve.moments.empty())
            peakOp_ = document.curve.moments[document.curve.peakMoment].op;
    }

    std::vector<PlanChange> read() {
        core::replayValid(graph_, schedule_, *this);
        std::vector<PlanChange> changes;
        for (auto& [key, change] : changes_) {
            for (Eviction& eviction : change.evictions) compare(eviction);
            changes.push_back(std::move(change));
        }
        return changes;
    }

    void runs(const ReplayState&, const core::Action& action) {
        notice(action.target, action.recomputes());
        if (!action.recomputes()) return;
        PlanChange& change = changeOf(action.target, false);
        ++change.times;
        change.cost += graph_.ops[action.target].time;
    }
    void made(const ReplayState&, const core::Action& action, core::StorageIndex s, std::size_t) {
        if (!action.recomputes() || freedAfter_[at(s)] == kPresent) return;
        add(action.target, false,
            {s, freedAfter_[at(s)], kNone, kNone, false, graph_.storages[s].bytes});
        freedAfter_[at(s)] = kPresent;
    }
    void freed(const ReplayState&, core::StorageIndex s) { freedAfter_[at(s)] = last_; }
    void freedStandIn(const ReplayState&, core::StorageIndex s, const core::StandIn&) {
        freedAfter_[at(s)] = last_;
        replacedAfter_.erase(s);
    }
    void replaced(const ReplayState&, core::StorageIndex s, const core::StandIn&) {
        replacedAfter_[s] = last_;
    }
    void restored(const ReplayState&, core::StorageIndex s, const core::StandIn& form) {
        const core::Storage& storage = graph_.storages[s];
        // No op makes a constant: the one after which it left stands for it.
        add(storage.isConstant() ? std::max(replacedAfter_[s], 0) : storage.creator, true,
            {s, replacedAfter_[s], kNone, kNone, false, storage.bytes - form.bytes, form.by,
             QString::fromUtf8(form.codec.data(), static_cast<qsizetype>(form.codec.size()))});
        replacedAfter_.erase(s);
    }
    // The captured step goes on: whatever came back before came back for this op.
    void ends(const ReplayState&, const core::Action& action) {
        if (!action.runsOp() || action.recomputes()) return;
        for (const Place& place : demanded_) evictionAt(place).until = action.target;
        demanded_.clear();
        last_ = action.target;
    }

private:
    static constexpr core::OpIndex kPresent = -2;
    struct Place {
        std::pair<core::OpIndex, bool> change;
        std::size_t eviction;
    };
    static std::size_t at(core::StorageIndex storage) { return static_cast<std::size_t>(storage); }

    PlanChange& changeOf(core::OpIndex op, bool standsIn) {
        PlanChange& change = changes_[{op, standsIn}];
        change.op = op;
        return change;
    }

    Eviction& evictionAt(const Place& place) {
        return changes_[place.change].evictions[place.eviction];
    }

    // Who reads first what is back.
    void notice(core::OpIndex reader, bool rebuild) {
        const core::Op& op = graph_.ops[reader];
        const auto seen = [&](core::StorageIndex storage) {
            if (rebuild)
                for (const Place& place : waiting_[at(storage)]) evictionAt(place).via = reader;
            waiting_[at(storage)].clear();
        };
        for (const core::Use& use : op.inputs) seen(graph_.storageOf(use.tensor));
        for (const core::Write& write : op.writes) seen(write.storage);
    }

    // The recorded step frees a storage after its last use.
    void compare(Eviction& eviction) const {
        const core::Storage& storage = graph_.storages[eviction.storage];
        const core::OpIndex last = lastUser(storage);
        if (!storage.aliveAtEnd && last <= eviction.after) {
            eviction.saved = Bytes(0);
            return;
        }
        eviction.overPeak = eviction.after < peakOp_ &&
                            (eviction.until == kNone || peakOp_ < eviction.until) &&
                            (storage.aliveAtEnd || peakOp_ <= last);
    }

    void add(core::OpIndex op, bool standsIn, Eviction eviction) {
        PlanChange& change = changeOf(op, standsIn);
        const Place place{{op, standsIn}, change.evictions.size()};
        waiting_[at(eviction.storage)].push_back(place);
        demanded_.push_back(place);
        change.evictions.push_back(std::move(eviction));
    }

    const core::TrainingGraph& graph_;
    const core::Schedule& schedule_;
    core::OpIndex peakOp_ = kNone, last_ = kNone;
    std::vector<core::OpIndex> freedAfter_;    // by storage
    std::vector<std::vector<Place>> waiting_;  // by storage: back, and not read yet
    std::vector<Place> demanded_;              // back, and the op that asked for it not seen yet
    std::map<core::StorageIndex, core::OpIndex> replacedAfter_;
    std::map<std::pair<core::OpIndex, bool>, PlanChange> changes_;
};

Bytes sumOnce(const std::vector<Eviction>& evictions, bool atPeak) {
    if (evictions.size() == 1)  // most changes
        return atPeak && !evictions.front().overPeak ? Bytes(0) : evictions.front().saved;
    std::set<core::StorageIndex> counted;
    Bytes sum;
    for (const Eviction& eviction : evictions)
        if ((!atPeak || eviction.overPeak) && counted.insert(eviction.storage).second)
            sum += eviction.saved;
    return sum;
}

QString opAt(const core::TrainingGraph& graph, core::OpIndex op) {
    const QString layer = layerText(graph, graph.ops[op].layer);
    const QString name = shortOpName(graph.ops[op].name);
    return QObject::tr("op %1 (%2)").arg(op).arg(layer.isEmpty() ? name : name + " · " + layer);
}

QString nameOf(const core::TrainingGraph& graph, core::StorageIndex storage) {
    const QString layer = layerText(graph, graph.storages[storage].layer);
    const QString name = storageName(graph, storage);
    return layer.isEmpty() ? name : QObject::tr("%1 of %2").arg(name, layer);
}

}  // namespace

Bytes PlanChange::saved() const {
    return sumOnce(evictions, false);
}
Bytes PlanChange::savedAtPeak() const {
    return sumOnce(evictions, true);
}

PlanChanges planChanges(const Document& document, const PlanEntry& plan) {
    std::vector<PlanChange> changes = Reader(document, plan).read();
    for (const core::Implementation& one : plan.chosen.implementations) {
        auto place = std::find_if(changes.begin(), changes.end(), [&](const PlanChange& change) {
            return change.op >= one.op && !change.standIn();
        });
        if (place == changes.end() || place->op != one.op) {
            place = changes.insert(place, PlanChange{});
            place->op = one.op;
        }
        place->implementation = &one;
        place->cost += plan.under->ops[one.op].time - document.graph.ops[one.op].time;
    }
    for (PlanChange& change : changes) {
        const auto measured = plan.measuredOps.find(change.op);
        if (change.standIn() || measured == plan.measuredOps.end()) continue;
        change.measuredCost = measured->second.again;
        if (change.implementation)
            *change.measuredCost += measured->second.time - document.graph.ops[change.op].time;
    }
    return std::make_shared<const std::vector<PlanChange>>(std::move(changes));
}

namespace {

// One that takes no less workspace was chosen for its time.
QString algorithmText(const core::Implementation& one, const core::Op& recorded) {
    const auto size = [](Bytes bytes) { return SizeUnit::fitting(bytes).text(bytes); };
    const Bytes workspace = one.workspace.value_or(Bytes(0));
    if (workspace == recorded.workspace)
        return QObject::tr("in less time, with the same workspace");
    const QString text =
        QObject::tr("%1 of workspace instead of %2").arg(size(workspace), size(recorded.workspace));
    return workspace < recorded.workspace ? text : QObject::tr("in less time, with %1").arg(text);
}

// What its implementation does otherwise.
QString implementationText(const core::TrainingGraph& recorded, const core::Implementation& one) {
    const auto size = [](Bytes bytes) { return SizeUnit::fitting(bytes).text(bytes); };
    const auto nameAndSize = [&](core::StorageIndex s) {
        return QObject::tr("%1 (%2)").arg(nameOf(recorded, s), size(recorded.storages[s].bytes));
    };
    const auto reader = [&] {
        return one.backward == kNone ? QObject::tr("its gradient op")
                                     : opAt(recorded, one.backward);
    };
    switch (one.kind) {
        case core::ImplementationKind::Algorithm:
            return algorithmText(one, recorded.ops[one.op]);
        case core::ImplementationKind::OutputActivated:
            return QObject::tr("%1 reads its result instead of %2")
                .arg(reader(), nameAndSize(one.insteadOf));
        case core::ImplementationKind::IntermediateActivated:
            return QObject::tr("%1 reads %2 instead of %3")
                .arg(reader(), size(one.bytes), nameAndSize(one.insteadOf));
        case core::ImplementationKind::InPlace:
            return QObject::tr("its result takes the place of %1").arg(nameAndSize(one.takes));
    }
    return {};
}

QString withoutEviction(const core::TrainingGraph& graph, core::OpIndex index) {
    const core::Op& op = graph.ops[index];
    if (!op.viewOnly) return QObject::tr("writes again what was rebuilt");
    const core::StorageIndex storage =
        op.outputs.empty() ? kNone : graph.storageOf(op.outputs.front().tensor);
    const core::OpIndex maker = storage == kNone ? kNone : graph.storages[storage].creator;
    return maker == kNone ? QObject::tr("a view, made again")
                          : QObject::tr("a view, made again after %1").arg(opAt(graph, maker));
}

}  // namespace

QString reasonText(const Document& document, const PlanEntry& plan, const PlanChange& change) {
    const core::TrainingGraph& graph = document.graphOf(plan);
    if (change.implementation) {
        const QString how = QObject::tr("runs as %1: %2")
                                .arg(toQString(change.implementation->name),
                                     implementationText(document.graph, *change.implementation));
        if (change.times == 0) return how;
        PlanChange recomputed = change;
        recomputed.implementation = nullptr;
        return QObject::tr("%1; %2").arg(how, reasonText(document, plan, recomputed));
    }
    if (change.evictions.empty()) return withoutEviction(graph, change.op);
    // The one that says most: over the peak first, then the largest.
    const auto most = std::max_element(
        change.evictions.begin(), change.evictions.end(), [](const Eviction& a, const Eviction& b) {
            return a.overPeak != b.overPeak ? b.overPeak : a.saved < b.saved;
        });
    const QString name = nameOf(graph, most->storage);
    const QString use =
        most->via != kNone     ? QObject::tr("rebuilding %1").arg(opAt(graph, most->via))
        : most->until != kNone ? QObject::tr("its use at %1").arg(opAt(graph, most->until))
                               : QObject::tr("the end of the step");
    const QString before = most->via != kNone && most->until != kNone
                               ? QObject::tr("%1 before op %2").arg(use).arg(most->until)
                               : use;
    QString text;
    if (most->saved == Bytes(0)) {
        text = QObject::tr("only on the way to %1: the recorded step does not hold it either")
                   .arg(before);
    } else {
        const QString size = SizeUnit::fitting(most->saved).text(most->saved);
        const QString from =
            most->after == kNone ? QObject::tr("the start") : QObject::tr("op %1").arg(most->after);
        const QString kept = !most->standIn ? QObject::tr("not kept")
                             : most->form.isEmpty()
                                 ? QObject::tr(core::traitsOf(*most->standIn).leaves)
                                 : QObject::tr("kept as %1").arg(most->form);
        text = QObject::tr("%1 is %2 from %3 to %4: %5 less %6")
                   .arg(name, kept, from, before, size,
                        most->overPeak ? QObject::tr("at the peak") : QObject::tr("meanwhile"));
    }
    if (change.evictions.size() > 1)
        text += QObject::tr(" (and %1 more)").arg(change.evictions.size() - 1);
    return text;
}

}  // namespace hw::viewer
