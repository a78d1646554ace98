// SPDX-License-Identifier: GPL-3.0-or-later
// Runs of neighbouring ops that share a phase or a layer, on the time axis of a curve.
#pragma once

#include <QString>
#include <string>
#include <vector>

#include "core/graph/training_graph.h"
#include "viewer/models/step_curve.h"

namespace hw::viewer {

struct LaneSpan {
    core::Nanoseconds begin, end;
    std::int32_t id = core::kNone;  // phase, layer or op, as the lane has it; kNone: not recorded
    core::Phase phase = core::Phase::Unknown;
};

/// A stream of a device.
struct StreamLane {
    std::int64_t stream = 0;
    std::vector<LaneSpan> spans;  // their id: index into Lanes::work
};

/// Stretches that the program named.
struct NamedLane {
    std::vector<LaneSpan> spans;  // their id: index into names; by begin, none over another
    std::vector<std::string> names;
};

struct Lanes {
    std::vector<LaneSpan> phases, layers, ops;
    NamedLane annotations;            // empty where the trace has none
    std::vector<StreamLane> streams;  // the busiest first; empty where no device was recorded
    std::vector<std::string> work;    // names of kernels and copies
};

Lanes lanesOf(const core::TrainingGraph& graph, const StepCurve& curve);

/// What an op or a kernel does, roughly: decides its colour in the lanes.
enum class OpFamily { Matrix, Normalization, Elementwise, Reduction, Movement, Other };
OpFamily opFamily(std::string_view opName);

QString layerText(const core::TrainingGraph& graph,
                  core::LayerIndex layer);  // "" when not recorded
/// A layer's path without what its ancestor `above` has; a number keeps one name before it:
/// "encoder.layers.0" in "encoder.layers" is "layers.0".
QString layerTail(const QString& path, const QString& above);
/// Is `layer` the layer `ancestor` or a part of it?
bool withinLayer(const core::TrainingGraph& graph, core::LayerIndex layer,
                 core::LayerIndex ancestor);
QString opText(const core::TrainingGraph& graph, core::OpIndex op);  // "convolution · layer1.0"

}  // namespace hw::viewer
