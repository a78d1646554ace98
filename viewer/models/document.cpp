// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/document.h"

#include <QFileInfo>
#include <QJsonArray>
#include <QJsonDocument>
#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/import/import.h"
#include "core/session/annotations.h"
#include "core/session/load_menu.h"
#include "core/session/session.h"
#include "core/session/shortages.h"
#include "viewer/models/recorded_curve.h"

namespace hw::viewer {
namespace {

constexpr int kColumns = 2000;  // of a curve that is read again for the part on the screen

// Of the report that the executor leaves with a run.
std::map<core::OpIndex, MeasuredOp> measuredOps(const std::string& details, std::size_t ops) {
    std::map<core::OpIndex, MeasuredOp> measured;
    const QJsonDocument report = QJsonDocument::fromJson(QByteArray::fromStdString(details));
    for (const QJsonValue& row : report[QStringLiteral("ops")].toArray()) {
        const auto nanoseconds = [&](const char* key) {
            return core::Nanoseconds(row[QLatin1String(key)].toInteger());
        };
        const qint64 op = row[QStringLiteral("op")].toInteger(-1);
        if (op >= 0 && op < static_cast<qint64>(ops))
            measured[static_cast<core::OpIndex>(op)] = {nanoseconds("measured_ns"),
                                                        nanoseconds("recomputation_measured_ns")};
    }
    return measured;
}

void attachRun(PlanEntry& entry, const core::RunRow& run, std::size_t ops) {
    entry.measuredPeak = run.measuredPeak;
    if (run.baselineTime > core::Nanoseconds(0))
        entry.measuredOverhead = ratio(run.time, run.baselineTime);
    entry.measuredOps = measuredOps(run.details, ops);
    entry.outputsCompared = run.compared;
    entry.outputsDifferent = run.different;
}

core::Status findChosen(const Document& document, PlanEntry& entry) {
    if (entry.header.implementations.empty()) return {};
    core::Result<core::Menu> chosen =
        core::chosenEntries(entry.header, document.graph, document.menu);
    if (!chosen) return chosen.error();
    core::Result<core::TrainingGraph> under =
        core::applyImplementations(document.graph, *chosen, entry.header.implementations);
    if (!under) return under.error();
    entry.chosen = std::move(*chosen);
    entry.under = std::make_shared<const core::TrainingGraph>(std::move(*under));
    return {};
}

// Storages that only the implementations make, or that they leave without bytes, have no place in
// the recorded step, which names what is resident.
void draw(const Document& document, PlanEntry& entry) {
    entry.curve = stepCurve(document.graphOf(entry), entry.schedule);
    if (!entry.under) return;
    const auto& recorded = document.graph.storages;
    std::erase_if(entry.curve.lifetimes, [&](const Lifetime& one) {
        const auto s = static_cast<std::size_t>(one.storage);
        return s >= recorded.size() || recorded[s].bytes != entry.under->storages[s].bytes;
    });
}

core::Result<PlanEntry> judge(const Document& document, const core::Plan& plan) {
    if (core::Status same = core::requireSameGraph(plan, document.graph); !same)
        return same.error();
    PlanEntry entry;
    entry.schedule = plan.schedule;
    entry.header = plan;
    entry.header.schedule.clear();
    if (core::Status found = findChosen(document, entry); !found) return found.error();
    const core::Evaluation judged = core::evaluate(document.graphOf(entry), plan.schedule);
    if (!judged.valid)
        return core::badInput("the plan cannot be run: " + judged.why,
                              "make it again with `highwater plan`");
    draw(document, entry);
    entry.planner = toQString(plan.planner);
    entry.budget = plan.budget;
    entry.peak = judged.peak;
    entry.time = judged.time;
    entry.overhead = ratio(judged.time, document.judged.time);
    entry.recomputedOps = judged.recomputedOps;
    // A bound speaks of the costs that it was proven with; a run may have measured others since.
    if (judged.time == plan.predictedTime) entry.lowerBound = plan.lowerBound;
    return entry;
}

// Plans of this step with their latest run; a plan of another graph or build is left out.
core::Status loadStoredPlans(const core::Session& session, Document& document) {
    core::Result<std::vector<core::PlanRow>> plans = session.plans();
    if (!plans) return plans.error();
    core::Result<std::vector<core::RunRow>> runs = session.runs();
    if (!runs) return runs.error();
    std::map<std::int64_t, const core::RunRow*> latest;
    const core::RunRow* unplanned = nullptr;
    for (const core::RunRow& run : *runs) {
        if (run.step != document.step) continue;
        (run.plan ? latest[*run.plan] : unplanned) = &run;
    }
    for (const core::PlanRow& row : *plans) {
        if (row.step != document.step) continue;
        core::Result<PlanEntry> entry = judge(document, row.plan);
        if (!entry) continue;
        entry->origin = PlanEntry::Origin::Session;
        entry->solveSeconds = row.solveSeconds;
        const auto run = latest.find(row.id);
        if (run != latest.end())
            attachRun(*entry, *run->second, document.graph.ops.size());
        else if (entry->baseline() && unplanned)
            attachRun(*entry, *unplanned, document.graph.ops.size());
        // The same plan stored twice is one row; the one that was run says more.
        const auto same =
            std::find_if(document.plans.begin(), document.plans.end(),
                         [&](const PlanPointer& other) { return samePlan(*other, *entry); });
        auto made = std::make_shared<const PlanEntry>(std::move(*entry));
        if (same == document.plans.end())
            document.plans.push_back(std::move(made));
        else if (made->measuredPeak)
            *same = std::move(made);
    }
    return {};
}

// "[64,3,7,7]" → "64 × 3 × 7 × 7"
QString shapeText(const std::string& sizes) {
    QString text = toQString(sizes).remove(QLatin1Char('[')).remove(QLatin1Char(']'));
    text.remove(QLatin1Char(' '));
    if (text.isEmpty()) return sizes.empty() ? QString() : QStringLiteral("scalar");
    return text.replace(QLatin1Char(','), QStringLiteral(" × "));
}

void loadTensorInfo(const core::Session& session, Document& document) {
    const core::Result<std::vector<core::TensorRow>> rows = session.tensors();
    if (!rows) return;  // figures do without
    std::unordered_map<std::int64_t, const core::TensorRow*> byId;
    for (const core::TensorRow& row : *rows) byId[row.id] = &row;
    for (const core::Tensor& tensor : document.graph.tensors) {
        const auto row = byId.find(tensor.sessionId);
        document.tensors.push_back(row == byId.end() ? TensorInfo{}
                                                     : TensorInfo{toQString(row->second->dtype),
                                                                  shapeText(row->second->sizes)});
    }
}

// When ops began, in time, and where their moments end on the step's axis.
using OpEnds = std::vector<std::pair<std::int64_t, core::Nanoseconds>>;

OpEnds opEnds(const std::vector<std::int64_t>& begins, const Document& document) {
    OpEnds ends;
    for (const Moment& moment : document.curve.moments)
        if (moment.op != core::kNone)
            if (const std::int64_t begin = begins[static_cast<std::size_t>(moment.op)]; begin != 0)
                ends.emplace_back(begin, moment.end);
    std::stable_sort(ends.begin(), ends.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    return ends;
}

// Ops stand side by side on the step's axis, so a gap lies between those around it; those of one
// place are one.
void placeGaps(const core::Session& session, Document& document) {
    const auto begins = core::opBegins(session, document.graph);
    if (!begins) return;
    const OpEnds ends = opEnds(*begins, document);
    if (ends.empty()) return;
    const auto endBefore = [&](std::int64_t time) {  // of the last op that began before
        const auto after = std::partition_point(ends.begin(), ends.end(),
                                                [&](const auto& op) { return op.first < time; });
        return after == ends.begin() ? core::Nanoseconds() : std::prev(after)->second;
    };
    std::map<std::pair<core::Nanoseconds, core::Nanoseconds>, std::pair<QString, int>> places;
    for (const core::GapRow& gap : document.gapRows) {
        if (!gap.beginNs || (gap.step && *gap.step != document.step)) continue;
        const core::Nanoseconds begin = endBefore(*gap.beginNs);
        const core::Nanoseconds end = endBefore(std::max(*gap.beginNs, gap.endNs.value_or(0)));
        auto& [text, count] = places[{begin, std::max(begin, end)}];
        if (count++ == 0) text = toQString(gap.what + ": " + gap.why);
    }
    for (const auto& [place, said] : places)
        document.gapSpans.push_back(
            {place.first, place.second,
             said.second == 1
                 ? said.first
                 : QObject::tr("%1, and %2 more").arg(said.first).arg(said.second - 1)});
}

void loadSurroundings(const core::Session& session, Document& document) {
    if (core::Result<core::CallStacks> stacks = core::CallStacks::load(session))
        document.stacks = std::move(*stacks);
    if (core::Result<std::vector<core::GapRow>> gaps = session.gaps())
        document.gapRows = std::move(*gaps);
    document.gaps = static_cast<qsizetype>(document.gapRows.size());
    if (const core::Result<std::optional<core::Bytes>> capacity = core::deviceCapacity(session))
        document.capacity = *capacity;
}

std::size_t ranksOf(const core::Session& session) {
    std::set<std::int64_t> processes;
    if (const auto steps = session.steps())
        for (const core::StepRow& step : *steps) processes.insert(step.process);
    return processes.size();
}

QString commandOf(const core::Session& session, std::int64_t step) {
    const auto steps = session.steps();
    const auto processes = session.processes();
    if (!steps || !processes) return {};
    for (const core::StepRow& row : *steps)
        for (const core::ProcessRow& process : *processes)
            if (row.id == step && process.id == row.process) return toQString(process.command);
    return {};
}

// What follows from the graph alone.
core::Status replay(Document& document, core::TrainingGraph graph) {
    document.graph = std::move(graph);
    document.storages = static_cast<std::int64_t>(document.graph.storages.size());
    document.baseline = core::baselineSchedule(document.graph);
    document.judged = core::evaluate(document.graph, document.baseline);
    if (!document.judged.valid)
        return core::badInput("the recorded step contradicts itself: " + document.judged.why,
                              "record it again, or choose another step");
    document.curve = stepCurve(document.graph, document.baseline);
    document.lanes = lanesOf(document.graph, document.curve);
    document.floor = document.graph.floorBytes();
    document.size = SizeUnit::fitting(document.judged.peak);
    document.time = TimeFormat::fitting(document.judged.time);
    return {};
}

// Allocations that failed, where the events have times or an order that the curve keeps.
void placeMarks(const core::Session& session, const core::RecordedMemory& memory,
                Document& document) {
    for (const core::Shortage& shortage : core::loadShortages(session)) {
        if (shortage.ordinal != memory.ordinal) continue;
        core::Nanoseconds at = memory.since(shortage.timeNs);
        if (!memory.timed) {
            const auto from =
                std::lower_bound(memory.seqs.begin(), memory.seqs.end(), shortage.seq);
            if (from == memory.seqs.end()) continue;  // not loaded: only the curve is
            at = memory.moments[static_cast<std::size_t>(from - memory.seqs.begin())].begin;
        }
        document.marks.push_back({std::clamp(at, core::Nanoseconds(0), document.curve.time),
                                  toQString(core::describeShortage(shortage))});
    }
}

// What of the trace's own is drawn once its memory is loaded.
void surroundRecorded(const core::Session& session, const core::RecordedMemory& memory,
                      Document& document) {
    document.storages = memory.storages;
    document.lanes = recordedLanes(memory, document.curve);
    if (core::Result<core::DeviceWork> work =
            core::loadDeviceWork(session, memory.ordinal, memory.originNs))
        addStreams(document.lanes, std::move(*work), document.curve);
    if (const auto annotations = core::loadAnnotations(session))
        addAnnotations(document.lanes, *annotations, memory, document.curve);
    placeMarks(session, memory, document);
    document.device = toQString(
        memory.deviceName.empty() ? memory.device : memory.device + " (" + memory.deviceName + ")");
    for (const core::RecordedDevice& device : memory.devices)
        if (device.events > 0) document.devices.push_back(device);
}

// Of the storages that are loaded, those of the peak, on a curve that has a moment a column.
std::vector<Lifetime> livesOfPeak(const core::RecordedMemory& memory, const RecordedSeries& series,
                                  const StepCurve& curve) {
    std::vector<Lifetime> lives;
    const auto peak = static_cast<std::int32_t>(curve.peakMoment);
    const auto momentOf = [&](std::int32_t event) {
        const auto at = static_cast<std::size_t>(event);
        return at < memory.events.size() ? static_cast<std::int32_t>(curve.momentAt(
                                               series.timeOf(memory.events[at].place, event)))
                                         : static_cast<std::int32_t>(curve.moments.size()) - 1;
    };
    for (const core::RecordedMemory::Held& held : memory.held)
        if (held.first <= memory.peakEvent && memory.peakEvent < held.end)
            lives.push_back({static_cast<core::StorageIndex>(lives.size()),
                             std::min(momentOf(held.first), peak),
                             std::max(momentOf(held.end), peak)});
    return lives;
}

// A trace without a step: its own curve, nothing to plan. Internal: there is nothing to show.
core::Status loadRecorded(const core::Session& session, const std::string& device,
                          Document& document) {
    const auto devices = core::recordedDevices(session);
    if (!devices) return devices.error();
    const auto chosen = core::chosenDevice(*devices, device);
    if (!chosen) return chosen.error();
    const std::shared_ptr<RecordedSeries> series =
        *chosen ? RecordedSeries::find(session, (*chosen)->ordinal) : nullptr;
    core::Result<core::RecordedMemory> memory = core::loadRecordedMemory(
        session, series ? core::RecordedDetail::Peak : core::RecordedDetail::Everything, device,
        &*devices);
    if (!memory) return memory.error();
    loadSurroundings(session, document);
    document.plannable = false;
    document.ordinal = memory->ordinal;
    document.bands = Bands::of(*memory, document.stacks);
    if (series) {
        series->startAt(memory->originNs);
        if (series->timed() == memory->timed) series->splitBy(BandHistory(*memory, document.bands));
    }
    document.series = series;
    document.curve = series ? series->window(core::Nanoseconds(0), series->length(), kColumns)
                            : recordedCurve(*memory, document.bands);
    if (series) document.curve.lifetimes = livesOfPeak(*memory, *series, document.curve);
    surroundRecorded(session, *memory, document);
    document.graph = std::move(memory->graph);
    document.judged.peak = document.floor = document.curve.peak;
    document.judged.time = document.curve.time;
    document.size = SizeUnit::fitting(document.curve.peak);
    document.time = TimeFormat::fitting(document.curve.time);
    const bool timed = series ? series->timed() : memory->timed;
    if (!timed) document.time = {0, QStringLiteral("events")};
    return {};
}

}  // namespace

bool samePlan(const PlanEntry& a, const PlanEntry& b) {
    return a.planner == b.planner && a.budget == b.budget && a.peak == b.peak && a.time == b.time &&
           a.recomputedOps == b.recomputedOps && a.status == b.status;
}

core::Result<DocumentPointer> loadDocument(const std::string& path,
                                           std::optional<std::int64_t> step,
                                           const std::string& device) {
    core::Result<core::Session> session = core::openAny(path);
    if (!session) return session.error();
    auto document = std::make_shared<Document>();
    document->path = path;
    document->name = QFileInfo(QString::fromStdString(path)).fileName();
    if (!step) {
        core::Result<std::int64_t> last = session->lastStep();
        if (!last) {
            const core::Status loaded = loadRecorded(*session, device, *document);
            if (loaded) return DocumentPointer(std::move(document));
            return loaded.error().code == core::ErrorCode::Usage ? loaded.error() : last.error();
        }
        step = *last;
    }
    if (!device.empty())
        return core::Error{core::ErrorCode::Usage, "a device is chosen in traces without a step",
                           "leave --device out: a recorded step has one curve"};
    document->step = *step;
    if (core::Result<core::SessionCounts> counts = session->counts())
        document->steps = counts->steps;
    document->ranks = ranksOf(*session);
    document->command = commandOf(*session, *step);
    document->overview = loadOverview(*session, *step);
    loadSurroundings(*session, *document);
    core::Result<core::TrainingGraph> graph = core::loadGraph(*session, *step);
    if (!graph) return graph.error();
    if (core::Status replayed = replay(*document, std::move(*graph)); !replayed)
        return replayed.error();
    if (core::Result<core::Menu> menu = core::loadMenu(*session, document->graph))
        document->menu = std::move(*menu);  // plans that choose from it are left out without
    loadTensorInfo(*session, *document);
    placeGaps(*session, *document);
    if (core::Status stored = loadStoredPlans(*session, *document); !stored) return stored.error();
    return DocumentPointer(std::move(document));
}

core::Result<DocumentPointer> documentOf(core::TrainingGraph graph, const QString& name) {
    auto document = std::make_shared<Document>();
    document->name = name;
    document->steps = 1;
    if (core::Status replayed = replay(*document, std::move(graph)); !replayed)
        return replayed.error();
    return DocumentPointer(std::move(document));
}

core::Status drawPlan(const Document& document, PlanEntry& entry) {
    if (core::Status found = findChosen(document, entry); !found) return found;
    draw(document, entry);
    return {};
}

core::Result<PlanPointer> loadPlan(const Document& document, const std::string& path) {
    core::Result<core::Plan> plan = core::readPlanFile(path);
    if (!plan) return plan.error();
    core::Result<PlanEntry> entry = judge(document, *plan);
    if (!entry) return entry.error();
    entry->origin = PlanEntry::Origin::File;
    return std::make_shared<const PlanEntry>(std::move(*entry));
}

core::Plan planOf(const PlanEntry& entry) {
    core::Plan plan = entry.header;
    plan.schedule = entry.schedule;
    return plan;
}

core::Status savePlan(const PlanEntry& entry, const std::string& path) {
    return core::writePlanFile(planOf(entry), path);
}

}  // namespace hw::viewer
