// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/plan_reasons.h"

#include <QObject>
#include <algorithm>
#include <map>
#include <set>

#include "viewer/models/live_set.h"

namespace hw::viewer {
namespace {

using core::Bytes;
using core::kNone;

// Walks the schedule once: who leaves after which op, and who reads it first once it is back.
class Reader {
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
        for (const core::Action& action : schedule_) {
            switch (action.kind) {
                case core::ActionKind::Compute:
                    notice(action.target, false);
                    for (const Place& place : demanded_) absenceAt(place).until = action.target;
                    demanded_.clear();
                    last_ = action.target;
                    break;
                case core::ActionKind::Recompute:
                    notice(action.target, true);
                    recompute(action);
                    break;
                case core::ActionKind::Free:
                    freedAfter_[at(action.target)] = last_;
                    break;
                case core::ActionKind::Encode:
                    encode(action);
                    break;
                case core::ActionKind::Decode:
                    decode(action.target);
                    break;
            }
        }
        std::vector<PlanChange> changes;
        for (auto& [key, change] : changes_) {
            for (Absence& absence : change.absences) compare(absence);
            changes.push_back(std::move(change));
        }
        return changes;
    }

private:
    static constexpr core::OpIndex kPresent = -2;
    struct Place {
        std::pair<core::OpIndex, bool> change;
        std::size_t absence;
    };
    static std::size_t at(core::StorageIndex storage) { return static_cast<std::size_t>(storage); }

    PlanChange& changeOf(core::OpIndex op, bool encoded) {
        PlanChange& change = changes_[{op, encoded}];
        change.op = op;
        return change;
    }

    Absence& absenceAt(const Place& place) {
        return changes_[place.change].absences[place.absence];
    }

    // Who reads first what is back.
    void notice(core::OpIndex reader, bool rebuild) {
        const core::Op& op = graph_.ops[reader];
        const auto seen = [&](core::StorageIndex storage) {
            if (rebuild)
                for (const Place& place : waiting_[at(storage)]) absenceAt(place).via = reader;
            waiting_[at(storage)].clear();
        };
        for (const core::Use& use : op.inputs) seen(graph_.storageOf(use.tensor));
        for (const core::Write& write : op.writes) seen(write.storage);
    }

    // The recorded step frees a storage after its last use.
    void compare(Absence& absence) const {
        const core::Storage& storage = graph_.storages[absence.storage];
        const core::OpIndex last = lastUser(storage);
        if (!storage.aliveAtEnd && last <= absence.after) {
            absence.saved = Bytes(0);
            return;
        }
        absence.overPeak = absence.after < peakOp_ &&
                           (absence.until == kNone || peakOp_ < absence.until) &&
                           (storage.aliveAtEnd || peakOp_ <= last);
    }

    void add(core::OpIndex op, bool encoded, Absence absence) {
        PlanChange& change = changeOf(op, encoded);
        const Place place{{op, encoded}, change.absences.size()};
        waiting_[at(absence.storage)].push_back(place);
        demanded_.push_back(place);
        change.absences.push_back(std::move(absence));
    }

    void recompute(const core::Action& action) {
        const core::Op& op = graph_.ops[action.target];
        PlanChange& change = changeOf(action.target, false);
        ++change.times;
        change.cost += op.time;
        for (const std::int32_t output : action.outputs) {
            const core::OpOutput& made = op.outputs[at(output)];
            const core::StorageIndex s = graph_.storageOf(made.tensor);
            if (!made.makesStorage || freedAfter_[at(s)] == kPresent) continue;
            add(action.target, false,
                {s, freedAfter_[at(s)], kNone, kNone, false, graph_.storages[s].bytes, {}});
            freedAfter_[at(s)] = kPresent;
        }
    }

    void encode(const core::Action& action) {
        const core::Storage& storage = graph_.storages[action.target];
        encoded_[action.target] = {last_, storage.bytes - action.encodedBytes,
                                   toQString(action.codec)};
    }
    void decode(core::StorageIndex storage) {
        const auto form = encoded_.find(storage);
        if (form == encoded_.end()) return;
        const Encoded& was = form->second;
        add(graph_.storages[storage].creator, true,
            {storage, was.after, kNone, kNone, false, was.saved, was.codec});
        encoded_.erase(form);
    }

    struct Encoded {
        core::OpIndex after;
        Bytes saved;
        QString codec;
    };
    const core::TrainingGraph& graph_;
    const core::Schedule& schedule_;
    core::OpIndex peakOp_ = kNone, last_ = kNone;
    std::vector<core::OpIndex> freedAfter_;    // by storage
    std::vector<std::vector<Place>> waiting_;  // by storage: back, and not read yet
    std::vector<Place> demanded_;              // back, and the op that asked for it not seen yet
    std::map<core::StorageIndex, Encoded> encoded_;
    std::map<std::pair<core::OpIndex, bool>, PlanChange> changes_;
};

Bytes sumOnce(const std::vector<Absence>& absences, bool atPeak) {
    std::set<core::StorageIndex> counted;
    Bytes sum;
    for (const Absence& absence : absences)
        if ((!atPeak || absence.overPeak) && counted.insert(absence.storage).second)
            sum += absence.saved;
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
    return sumOnce(absences, false);
}
Bytes PlanChange::savedAtPeak() const {
    return sumOnce(absences, true);
}

std::vector<PlanChange> planChanges(const Document& document, const PlanEntry& plan) {
    std::vector<PlanChange> changes = Reader(document, plan).read();
    for (const core::Implementation& one : plan.chosen.implementations) {
        auto place = std::find_if(changes.begin(), changes.end(), [&](const PlanChange& change) {
            return change.op >= one.op && !change.encoded();
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
        if (change.encoded() || measured == plan.measuredOps.end()) continue;
        change.measuredCost = measured->second.again;
        if (change.implementation)
            *change.measuredCost += measured->second.time - document.graph.ops[change.op].time;
    }
    return changes;
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

QString withoutAbsence(const core::TrainingGraph& graph, core::OpIndex index) {
    const core::Op& op = graph.ops[index];
    if (!op.viewOnly()) return QObject::tr("writes again what was rebuilt");
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
    if (change.absences.empty()) return withoutAbsence(graph, change.op);
    // The one that says most: over the peak first, then the largest.
    const auto most = std::max_element(
        change.absences.begin(), change.absences.end(), [](const Absence& a, const Absence& b) {
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
        const QString kept = most->codec.isEmpty() ? QObject::tr("not kept")
                                                   : QObject::tr("kept as %1").arg(most->codec);
        text = QObject::tr("%1 is %2 from %3 to %4: %5 less %6")
                   .arg(name, kept, from, before, size,
                        most->overPeak ? QObject::tr("at the peak") : QObject::tr("meanwhile"));
    }
    if (change.absences.size() > 1)
        text += QObject::tr(" (and %1 more)").arg(change.absences.size() - 1);
    return text;
}

}  // namespace hw::viewer
