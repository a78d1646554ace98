// SPDX-License-Identifier: GPL-3.0-or-later
// One step of one session, loaded and judged. Immutable once made, so that threads may share it.
#pragma once

#include <QString>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/memory/evaluate.h"
#include "core/plan/implementations.h"
#include "core/plan/plan.h"
#include "core/session/call_stacks.h"
#include "core/session/recorded_memory.h"
#include "core/session/session.h"
#include "planners/planner.h"
#include "viewer/models/format.h"
#include "viewer/models/lanes.h"
#include "viewer/models/recorded_series.h"
#include "viewer/models/step_curve.h"
#include "viewer/models/step_overview.h"

namespace hw::viewer {

/// One op in the latest run of a plan that does not run it as recorded.
struct MeasuredOp {
    core::Nanoseconds time;   // of its first computation
    core::Nanoseconds again;  // of all its recomputations
};

/// A plan under the judge, with its curve, and what was measured when it ran.
struct PlanEntry {
    enum class Origin { Planner, File, Session };

    Origin origin = Origin::Planner;
    QString planner;
    planners::PlanStatus status = planners::PlanStatus::Ok;
    QString reason;  // when there is no schedule
    core::Bytes budget, peak;
    core::Nanoseconds time;
    double overhead = 0;  // 0 when there is no schedule
    std::int64_t recomputedOps = 0;
    std::optional<core::Nanoseconds> lowerBound;
    std::optional<double> solveSeconds;
    std::optional<core::Bytes> measuredPeak;
    std::optional<double> measuredOverhead;  // over the unplanned passes of the same run
    std::map<core::OpIndex, MeasuredOp> measuredOps;
    std::int64_t outputsCompared = 0, outputsDifferent = 0;  // compared 0: never run
    core::Schedule schedule;
    core::Plan header;  // the whole plan but its schedule, for writing it out
    StepCurve curve;    // of the recorded step's storages: what implementations add counts, unnamed
    // Where it does not run ops as recorded: those implementations, and the graph under them.
    core::Menu chosen;
    std::shared_ptr<const core::TrainingGraph> under;

    bool ok() const { return status == planners::PlanStatus::Ok; }
    bool baseline() const { return planner == QLatin1String(core::kBaselinePlanner); }
};
/// Equal in everything that the judge says of them.
bool samePlan(const PlanEntry& a, const PlanEntry& b);
using PlanPointer = std::shared_ptr<const PlanEntry>;
/// There is a schedule, and it is not the recorded order itself.
inline bool isPlanned(const PlanPointer& plan) {
    return plan && plan->ok() && !plan->baseline();
}

/// What is recorded of a tensor; empty where it is not.
struct TensorInfo {
    QString dtype;  // "float32"
    QString shape;  // "64 × 3 × 7 × 7"; "scalar"
};

/// A stretch of the step of which something was not recorded.
struct GapSpan {
    core::Nanoseconds begin, end;  // on the curve's axis; equal where nothing lies between
    QString text;                  // what, and why
};

/// A moment that the trace itself marks: an allocation that failed.
struct DocumentMark {
    core::Nanoseconds at;  // on the curve's axis
    QString text;
};

struct Document {
    std::string path;
    QString name;     // of the file
    QString command;  // of the process that made the step; empty where it is not known
    std::int64_t step = 0, steps = 0;
    std::size_t ranks = 1;  // that have a step in the session
    std::vector<StepSummary>
        overview;  // of all recorded steps; empty where there is no curve of them
    qsizetype gaps = 0;
    std::int64_t storages = 0;  // recorded; the graph of a series has those of its peak alone
    std::int64_t ordinal = -1;  // of the device whose events an imported trace shows
    QString device;             // it, by its label and name: "cuda:0 (Tesla V100-SXM2-16GB)"
    std::vector<core::RecordedDevice> devices;  // with memory, of such a trace
    std::vector<DocumentMark> marks;            // of such a trace, by time
    bool plannable = true;  // false: an imported trace that holds no step, only what it recorded
    core::TrainingGraph graph;
    core::Menu menu;  // implementations of its ops that were measured
    core::Schedule baseline;
    core::Evaluation judged;                       // of the baseline
    StepCurve curve;                               // of the baseline
    std::shared_ptr<const RecordedSeries> series;  // where there is more of the curve than that
    Bands bands;                                   // by which the curve's bytes are split
    Lanes lanes;
    core::Bytes floor;                // no schedule is below
    std::vector<TensorInfo> tensors;  // by tensor; may be empty
    core::CallStacks stacks;          // empty where none were recorded
    std::vector<core::GapRow> gapRows;
    std::vector<GapSpan> gapSpans;        // of this step, those that have a time
    std::optional<core::Bytes> capacity;  // of the device, where the session knows it
    std::vector<PlanPointer> plans;       // stored in the session, with their runs
    SizeUnit size;
    TimeFormat time;

    core::Bytes peak() const { return judged.peak; }
    /// False: an imported trace that tells kernels or ops alone.
    bool hasMemory() const { return plannable || judged.peak > core::Bytes(0); }
    /// Why there is none, in words: what the trace says of it, or that it has none.
    QString whyNoMemory() const;
    /// Of so many events only the highest moment's storages are known.
    bool knowsPeakOnly() const { return series != nullptr; }
    /// The graph that the plan's schedule is one of.
    const core::TrainingGraph& graphOf(const PlanEntry& plan) const {
        return plan.under ? *plan.under : graph;
    }
    TensorInfo tensorInfo(core::StorageIndex storage) const;  // of the tensor that came with it
    TensorInfo viewInfo(core::TensorIndex tensor) const;
    /// The call stacks (CallStacks::kNone: none is known) that led to an op, and to a storage.
    std::int64_t stackOfOp(core::OpIndex op) const;
    std::int64_t stackOf(core::StorageIndex storage) const;
    Band bandOf(core::StorageIndex storage) const { return bands.of(graph.storages[storage]); }
    /// What is said of a storage beside its band's colour: "activation"; by line, that line.
    QString kindOf(core::StorageIndex storage) const;
    /// The line of the program that made a storage, "model.py:12 forward"; empty where none is
    /// known.
    QString lineOf(core::StorageIndex storage) const;
    /// The program's own frames of a stack, the innermost first.
    std::vector<const core::SourceFrameRow*> programFrames(std::int64_t stack) const;
    /// The call stack that led to a storage: those frames, one a line.
    QString stackText(core::StorageIndex storage) const;
    QString peakPlace() const;  // "backward · layer1.0.conv2": phase and layer of the peak
};
using DocumentPointer = std::shared_ptr<const Document>;

/// Opens a session or an importable file and loads one step (the last complete one unless given).
/// `device`: of a trace without a step, whose memory, by its label; empty: that with the highest
/// peak. Usage: there is no memory of such a device.
core::Result<DocumentPointer> loadDocument(const std::string& path,
                                           std::optional<std::int64_t> step = std::nullopt,
                                           const std::string& device = {});

/// A graph that is in no file. Errors: BadInput when it contradicts itself.
core::Result<DocumentPointer> documentOf(core::TrainingGraph graph, const QString& name);

/// What the plan chose, the graph under it, and the curve of its schedule there. Errors: BadInput
/// when the document's menu does not have what it chose.
core::Status drawPlan(const Document& document, PlanEntry& entry);

/// Judges a plan file for the document's graph. BadInput: another graph, or an invalid schedule.
core::Result<PlanPointer> loadPlan(const Document& document, const std::string& path);

/// The whole plan of an entry that has one.
core::Plan planOf(const PlanEntry& entry);
/// Writes it. BadInput: the file cannot be written.
core::Status savePlan(const PlanEntry& entry, const std::string& path);

/// Runs a planner at a budget, under the judge; a search gets `seconds`. A planner that finds
/// nothing gives an entry that says why; Usage: there is no such planner.
core::Result<PlanPointer> computePlan(const Document& document, const std::string& planner,
                                      core::Bytes budget, double seconds,
                                      const planners::Progress& progress = {});

/// The first plan that our planner finds: tens of milliseconds for thousands of ops, no bound,
/// and no promise of being cheap. An entry that says why where it finds none.
core::Result<PlanPointer> quickPlan(const Document& document, core::Bytes budget,
                                    const planners::Progress& progress = {});

/// The plan of a planner that looks at no budget, such as Chen's with sqrt(n) segments, as one for
/// its own peak: milliseconds for thousands of ops. An entry that says why where there is none
/// below the recorded peak; Usage: there is no such planner.
core::Result<PlanPointer> ownPlan(const Document& document, const std::string& planner,
                                  const planners::Progress& progress = {});

QString placeOf(const core::TrainingGraph& graph, core::OpIndex op);

}  // namespace hw::viewer
