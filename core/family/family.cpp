// SPDX-License-Identifier: MIT
#include "core/family/family.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "core/family/align.h"
#include "core/family/size_axis.h"
#include "core/memory/evaluate.h"

namespace hw::core {
namespace {

Bytes baselinePeak(const TrainingGraph& graph) {
    return evaluate(graph, baselineSchedule(graph)).peak;
}

/// A larger convolution may run in another kernel. In the backward pass oneDNN's copies the
/// gradient and the input into a layout of its own; these copies are its workspace.
Bytes workspaceOfOtherKernels(const TrainingGraph& graph, const Op& op) {
    Bytes copies;
    if (op.name != "aten::convolution_backward") return copies;
    for (const Use& use : op.inputs) {
        const Storage& storage = graph.storages[graph.storageOf(use.tensor)];
        if (!storage.isParameter()) copies += storage.bytes;
    }
    return copies;
}

/// What steps of one size differ by at least, as a share, where too few were recorded to show it.
constexpr double kNoise = 0.05;

/// `steps`: times of whole ones, by size.
bool timesGrow(std::map<std::int64_t, std::vector<std::int64_t>> steps) {
    double noise = kNoise;
    std::vector<double> quickest;  // by size
    for (auto& [size, times] : steps) {
        std::sort(times.begin(), times.end());
        quickest.push_back(static_cast<double>(times.front()));
        const std::int64_t usual = times[(times.size() - 1) / 2];
        if (times.front() > 0)
            noise = std::max(noise, static_cast<double>(usual) / quickest.back() - 1);
    }
    return quickest.back() > quickest.front() * (1 + noise);
}

// Of each op, over steps of one size; of two the lower one: what disturbs makes ops longer.
std::vector<std::int64_t> medians(const std::vector<std::vector<std::int64_t>>& steps) {
    std::vector<std::int64_t> made, seen(steps.size());
    for (std::size_t op = 0; op < steps.front().size(); ++op) {
        for (std::size_t i = 0; i < steps.size(); ++i) seen[i] = steps[i][op];
        const auto middle = seen.begin() + static_cast<std::ptrdiff_t>((seen.size() - 1) / 2);
        std::nth_element(seen.begin(), middle, seen.end());
        made.push_back(*middle);
    }
    return made;
}

}  // namespace

Result<Family> Family::make(std::vector<FamilyRecord> records, std::optional<int> vary) {
    const FamilyRecord& first = records.front();
    std::vector<Alignment> alignments;
    std::vector<std::vector<TensorForm>> forms;  // by record, as the first one's tensors
    ShapesOfRecords shapes;
    for (const FamilyRecord& record : records) {
        auto aligned = align({first.graph, first.name}, {record.graph, record.name});
        if (!aligned) return aligned.error();
        auto& made = forms.emplace_back(first.graph.tensors.size());
        for (std::size_t t = 0; t < made.size(); ++t)
            if (const TensorIndex there = aligned->tensors[t]; there != kNone)
                made[t] = record.forms[there];
        auto& sizes = shapes.emplace_back();
        for (const TensorForm& form : made) sizes.push_back(form.sizes);
        alignments.push_back(std::move(*aligned));
    }
    const auto axis = findSizeAxis(first.graph, shapes, vary);
    if (!axis) return axis.error();

    Family family;
    std::map<std::int64_t, std::vector<std::vector<std::int64_t>>> timesOfSize;
    family.dimension_ = axis->dimension;
    family.batchShape_ = shapes.front()[axis->tensor];
    for (std::size_t r = 0; r < records.size(); ++r) {
        const std::int64_t size = axis->sizes[r];
        if (size == 0) continue;
        const TrainingGraph& graph = records[r].graph;
        auto& times = timesOfSize[size];
        times.emplace_back();
        for (const Op& op : graph.ops) times.back().push_back(op.time.count());
        if (times.size() > 1) continue;
        Figures& figures = family.figures_.emplace_back();
        figures.size = size;
        for (const StorageIndex there : alignments[r].storages)
            figures.bytes.push_back(graph.storages[there].bytes.count());
        for (const Op& op : graph.ops) figures.workspaces.push_back(op.workspace.count());
        figures.forms = std::move(forms[r]);
    }
    std::sort(family.figures_.begin(), family.figures_.end(),
              [](const Figures& a, const Figures& b) { return a.size < b.size; });
    for (Figures& figures : family.figures_) {
        family.sizes_.push_back(figures.size);
        figures.times = medians(timesOfSize[figures.size]);
    }
    std::map<std::int64_t, std::vector<std::int64_t>> totals;
    for (const auto& [size, steps] : timesOfSize)
        for (const auto& times : steps)
            totals[size].push_back(std::accumulate(times.begin(), times.end(), std::int64_t{0}));
    family.graph_ = std::move(records.front().graph);
    family.fit();
    family.timesGrow_ = timesGrow(std::move(totals));
    return family;
}

void Family::fit() {
    const auto points = [&](std::vector<std::int64_t> Figures::*figure, std::size_t index) {
        std::vector<SizePoint> made;
        for (const Figures& figures : figures_)
            made.push_back({figures.size, (figures.*figure)[index]});
        return made;
    };
    // What no op reads may be of another step: the batch before, of another size perhaps.
    const auto isRead = [&](std::size_t s) { return !graph_.storages[s].readers.empty(); };
    // Where bytes are no straight line, the size is one of a sequence.
    curve_ = SizeCurve::Straight;
    for (std::size_t s = 0; s < graph_.storages.size() && figures_.size() > 2; ++s)
        if (isRead(s) && !ExactFit(points(&Figures::bytes, s), curve_).affine())
            curve_ = SizeCurve::Quadratic;
    bytes_.clear(), workspaces_.clear(), times_.clear();
    for (std::size_t s = 0; s < graph_.storages.size(); ++s) {
        ExactFit exact(points(&Figures::bytes, s), curve_);
        if (isRead(s) || exact.affine())
            bytes_.emplace_back(std::move(exact));
        else
            bytes_.emplace_back(MeasuredFit(points(&Figures::bytes, s), curve_));
    }
    const SizeCurve kernels =
        curve_ == SizeCurve::Quadratic ? SizeCurve::Quadratic : SizeCurve::Kernels;
    for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
        workspaces_.emplace_back(points(&Figures::workspaces, i), kernels);
        times_.emplace_back(points(&Figures::times, i), curve_);
    }
    // Short ops are measured badly, and a fit that may not fall errs upwards: their sum does not.
    std::vector<SizePoint> steps;
    for (const Figures& figures : figures_)
        steps.push_back({figures.size, std::accumulate(figures.times.begin(), figures.times.end(),
                                                       std::int64_t{0})});
    stepTime_.emplace(steps, curve_);
}

TrainingGraph Family::graphAt(std::int64_t size) const {
    TrainingGraph graph = graph_;
    for (std::size_t s = 0; s < graph.storages.size(); ++s)
        graph.storages[s].bytes =
            Bytes(std::visit([&](const auto& fit) { return fit.at(size); }, bytes_[s]));
    for (std::size_t i = 0; i < graph.ops.size(); ++i) {
        Bytes& workspace = graph.ops[i].workspace;
        workspace = Bytes(workspaces_[i].at(size));
        if (size > sizes_.back())
            workspace = std::max(workspace, workspaceOfOtherKernels(graph, graph.ops[i]));
        graph.ops[i].time = Nanoseconds(times_[i].at(size));
    }
    const double scale = ratio(Nanoseconds(stepTime_->at(size)), graph.totalTime());
    for (Op& op : graph.ops)
        op.time = Nanoseconds(std::llround(static_cast<double>(op.time.count()) * scale));
    return graph;
}

TensorForm Family::formAt(TensorIndex tensor, std::int64_t size) const {
    std::vector<SizedForm> records;
    for (const Figures& figures : figures_) {
        const TensorForm& form = figures.forms[tensor];
        const std::size_t dimensions = figures_.front().forms[tensor].sizes.size();
        if (form.sizes.size() != dimensions || form.strides.size() != dimensions) return {};
        records.push_back({figures.size, form});
    }
    return core::formAt(records, size);
}

std::vector<Family::LeftOut> Family::leaveOneOut() const {
    std::vector<LeftOut> rows;
    const std::size_t needed = curve_ == SizeCurve::Quadratic ? 3 : 2;
    for (std::size_t left = 0; left < figures_.size() && figures_.size() > needed; ++left) {
        const Figures& recorded = figures_[left];
        Family others = *this, alone = *this;
        others.figures_.erase(others.figures_.begin() + static_cast<std::ptrdiff_t>(left));
        alone.figures_ = {recorded};
        others.fit(), alone.fit();
        const TrainingGraph predicted = others.graphAt(recorded.size),
                            known = alone.graphAt(recorded.size);
        rows.push_back({recorded.size, baselinePeak(predicted), baselinePeak(known),
                        predicted.totalTime(), known.totalTime()});
    }
    return rows;
}

}  // namespace hw::core
