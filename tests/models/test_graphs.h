// SPDX-License-Identifier: GPL-3.0-or-later
// A graph small enough to check by hand, and the logs that are too large for that.
#pragma once

#include <QFile>
#include <QJsonDocument>
#include <QJsonObject>
#include <string>

#include "core/graph/training_graph.h"
#include "tests/unit/test_data.h"

namespace hw::viewer::samples {

/// weights (100 B, constant) -> a (40 B, 3 ns) -> b (60 B, workspace 25 B, 5 ns) -> grad (10 B, 2
/// ns) with `a` needed by the last op, `a` and `b` released at the end, `grad` kept.
inline core::TrainingGraph smallGraph() {
    using namespace core;
    TrainingGraph graph;
    graph.layers = {{"(root)", "", kNone}, {"conv", "Conv2d", 0}};
    graph.storages.resize(4);
    const std::int64_t bytes[] = {100, 40, 60, 10};
    const Category categories[] = {Category::Parameter, Category::Activation, Category::Temporary,
                                   Category::Gradient};
    for (int s = 0; s < 4; ++s) {
        graph.storages[s].bytes = Bytes(bytes[s]);
        graph.storages[s].category = categories[s];
        graph.tensors.push_back({s, kNone, kNone});
    }
    const auto op = [](const char* name, ShortList<Use> inputs, TensorIndex output, int time,
                       int workspace, Phase phase) {
        Op made;
        made.name = name;
        made.inputs = std::move(inputs);
        made.outputs = {{output, true}};
        made.time = Nanoseconds(time);
        made.workspace = Bytes(workspace);
        made.phase = phase;
        made.layer = 1;
        return made;
    };
    graph.ops = {op("aten::convolution", {{0, 0}}, 1, 3, 0, Phase::Forward),
                 op("aten::relu", {{1, 0}}, 2, 5, 25, Phase::Forward),
                 op("aten::convolution_backward", {{1, 0}, {2, 0}}, 3, 2, 0, Phase::Backward)};
    using Kind = Event::Kind;
    graph.events = {{Kind::Constant, 0}, {Kind::Compute, 0}, {Kind::Compute, 1},
                    {Kind::Compute, 2},  {Kind::Release, 1}, {Kind::Release, 2}};
    graph.finalTensors = {0, 3};
    graph.finish();
    return graph;
}

/// Tests with logs of the simulator: with those of each folder that holds some.
class OnLogs : public testing::TestWithParam<std::string> {
protected:
    static std::string logPath(const std::string& name) {
        return GetParam() + "/simrd/" + name + ".log.gz";
    }
    /// A figure of the step as recorded, as it stands beside the log: memory (bytes), compute (ns).
    static qint64 expected(const std::string& name, const char* figure) {
        QFile file(QString::fromStdString(GetParam() + "/simrd/" + name + ".expected.json"));
        if (!file.open(QIODevice::ReadOnly)) return -1;
        const QJsonObject base =
            QJsonDocument::fromJson(file.readAll()).object()[QLatin1String("base")].toObject();
        return base[QLatin1String(figure)].toInteger(-1);
    }
};

}  // namespace hw::viewer::samples

#define HW_WITH_LOGS(suite) HW_WITH_DATA(suite, "simrd")
