// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/lanes.h"

#include <array>

#include "viewer/models/format.h"

namespace hw::viewer {
namespace {

void extend(std::vector<LaneSpan>& lane, const Moment& moment, std::int32_t id, core::Phase phase) {
    if (!lane.empty() && lane.back().id == id && lane.back().phase == phase)
        lane.back().end = moment.end;
    else
        lane.push_back({moment.begin, moment.end, id, phase});
}

}  // namespace

Lanes lanesOf(const core::TrainingGraph& graph, const StepCurve& curve) {
    Lanes lanes;
    for (const Moment& moment : curve.moments) {
        if (moment.op == core::kNone) continue;
        const core::Op& op = graph.ops[moment.op];
        const auto phase = static_cast<std::int32_t>(op.phase);
        extend(lanes.phases, moment, op.phase == core::Phase::Unknown ? core::kNone : phase,
               op.phase);
        extend(lanes.layers, moment, op.layer, op.phase);
        lanes.ops.push_back({moment.begin, moment.end, moment.op, op.phase});
    }
    return lanes;
}

OpFamily opFamily(std::string_view name) {
    struct Rule {
        std::string_view part;
        OpFamily family;
    };
    // First match wins: "native_batch_norm" before anything that "norm" could hide in.
    static constexpr std::array<Rule, 35> kRules{{
        {"norm", OpFamily::Normalization},
        {"conv", OpFamily::Matrix},
        {"mm", OpFamily::Matrix},
        {"linear", OpFamily::Matrix},
        {"matmul", OpFamily::Matrix},
        {"attention", OpFamily::Matrix},
        {"lstm", OpFamily::Matrix},
        {"gru", OpFamily::Matrix},
        {"softmax", OpFamily::Reduction},
        {"sum", OpFamily::Reduction},
        {"mean", OpFamily::Reduction},
        {"pool", OpFamily::Reduction},
        {"loss", OpFamily::Reduction},
        {"max", OpFamily::Reduction},
        {"reduce_kernel", OpFamily::Reduction},
        {"view", OpFamily::Movement},
        {"transpose", OpFamily::Movement},
        {"cat", OpFamily::Movement},
        {"copy", OpFamily::Movement},
        {"clone", OpFamily::Movement},
        {"permute", OpFamily::Movement},
        {"index", OpFamily::Movement},
        {"embedding", OpFamily::Movement},
        {"Memcpy", OpFamily::Movement},
        {"Memset", OpFamily::Movement},
        {"nccl", OpFamily::Movement},
        {"add", OpFamily::Elementwise},
        {"mul", OpFamily::Elementwise},
        {"div", OpFamily::Elementwise},
        {"relu", OpFamily::Elementwise},
        {"threshold", OpFamily::Elementwise},
        {"dropout", OpFamily::Elementwise},
        {"sigmoid", OpFamily::Elementwise},
        {"tanh", OpFamily::Elementwise},
        {"elementwise", OpFamily::Elementwise},
    }};
    for (const Rule& rule : kRules)
        if (name.find(rule.part) != std::string_view::npos) return rule.family;
    return OpFamily::Other;
}

QString layerText(const core::TrainingGraph& graph, core::LayerIndex layer) {
    return layer == core::kNone ? QString() : toQString(graph.layers[layer].path);
}

QString layerTail(const QString& path, const QString& above) {
    if (above.isEmpty()) return path;
    if (const QString frames = above + QStringLiteral(" > "); path.startsWith(frames))
        return path.mid(frames.size());  // call stacks of imported traces
    if (!path.startsWith(above + QLatin1Char('.'))) return path;
    const QString tail = path.mid(above.size() + 1);
    const bool number = !tail.isEmpty() && tail.front().isDigit();
    return number ? above.section(QLatin1Char('.'), -1) + QLatin1Char('.') + tail : tail;
}

bool withinLayer(const core::TrainingGraph& graph, core::LayerIndex layer,
                 core::LayerIndex ancestor) {
    for (; layer != core::kNone; layer = graph.layers[layer].parent)
        if (layer == ancestor) return true;
    return false;
}

QString opText(const core::TrainingGraph& graph, core::OpIndex index) {
    const core::Op& op = graph.ops[index];
    const QString layer = layerText(graph, op.layer);
    const QString name = shortOpName(op.name);
    return layer.isEmpty() ? name : name + QStringLiteral(" · ") + layer;
}

}  // namespace hw::viewer
