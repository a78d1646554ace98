// SPDX-License-Identifier: GPL-3.0-or-later
#include <cstdio>
#include <iostream>
#include <sstream>

#include "app/cli.h"
#include "app/info_by.h"
#include "app/info_ranks.h"
#include "app/info_recorded.h"
#include "core/family/predicted_session.h"
#include "core/import/import.h"
#include "core/memory/evaluate.h"

namespace hw::app {
namespace {

using namespace hw::core;

struct InfoArguments {
    std::string file;
    std::optional<std::int64_t> step;
    std::string costs;
    std::string by;
    std::string device;
    bool ranks = false;
};

/// Where the session is a prediction of another size (`fit -o`): of which, and from what.
Json predictionOf(const Session& session) {
    const auto size = predictedSize(session);
    if (!size || !*size) return nullptr;
    Json from = Json::array();
    if (const auto files = session.meta(kPredictedFrom)) {
        std::istringstream lines(*files);
        for (std::string line; std::getline(lines, line);) from.push_back(line);
    }
    return {{"size", **size}, {"from", from}};
}

void printPrediction(const Json& prediction) {
    if (prediction.is_null()) return;
    std::string from;
    for (const Json& file : prediction["from"])
        from += (from.empty() ? "" : ", ") + file.get<std::string>();
    std::printf("  predicted: size %lld, from %s\n", prediction["size"].get<long long>(),
                from.c_str());
}

void answerStep(const Session& session, const StepGraph& step, const SessionCounts& counts) {
    const TrainingGraph& graph = step.graph;
    answerWith({{"ops", graph.ops.size()},
                {"tensors", graph.tensors.size()},
                {"storages", graph.storages.size()},
                {"layers", graph.layers.size()},
                {"steps", counts.steps},
                {"events", counts.events},
                {"baseline", baselineJson(graph, step.baseline)},
                {"categories", categoriesJson(categoriesAtPeak(graph, step.baseline))},
                {"step", graph.sessionStep},
                {"costs", costSetName(graph.costs)},
                {"fingerprint", graph.fingerprint()},
                {"predicted", predictionOf(session)},
                {"ranks", ranksJson(session)},
                {"collectives", collectivesJson(session, graph.sessionStep)},
                {"gpu", gpuFigures(session)},
                {"gaps", gapList(session)}});
}

void printStep(const Session& session, const StepGraph& step, const SessionCounts& counts,
               const std::string& file) {
    const TrainingGraph& graph = step.graph;
    std::printf("%s, step %lld of %lld recorded\n", file.c_str(),
                static_cast<long long>(graph.sessionStep), static_cast<long long>(counts.steps));
    printPrediction(predictionOf(session));
    std::printf("  ops %zu, tensors %zu, storages %zu, layers %zu\n", graph.ops.size(),
                graph.tensors.size(), graph.storages.size(), graph.layers.size());
    std::printf("  baseline peak %s, op time %s (%s)\n", humanBytes(step.baseline.peak).c_str(),
                humanTime(graph.totalTime()).c_str(),
                std::string(costSetName(graph.costs)).c_str());
    const Bytes constants = graph.constantBytes(), atOnce = graph.constantPeak();
    std::printf(
        "  constants %s%s, largest op %s\n", humanBytes(constants).c_str(),
        atOnce < constants ? (", at most " + humanBytes(atOnce) + " at a time").c_str() : "",
        humanBytes(graph.bottleneckBytes()).c_str());
    std::printf("  at the peak:");
    for (const auto& [name, bytes] : categoriesAtPeak(graph, step.baseline))
        std::printf(" %s %s;", name.c_str(), humanBytes(bytes).c_str());
    std::printf("\n");
    printGpu(gpuFigures(session));
    printCollectives(session, graph.sessionStep);
    printRanks(session);
    printGaps(session);
}

int run(const InfoArguments& arguments, const Common& common) {
    std::optional<CostSet> costs;
    if (!arguments.costs.empty()) {
        const auto parsed = parseCosts(arguments.costs);
        if (!parsed) return fail(parsed.error());
        costs = *parsed;
    }
    if (!arguments.by.empty())
        return printOrigins(arguments.file, arguments.by, arguments.step, costs, arguments.device,
                            common);
    auto session = openAny(arguments.file);
    if (!session) return fail(session.error());
    if (arguments.ranks) return printRankTimes(*session, costs, common);
    const auto counts = session->counts();
    if (!counts) return fail(counts.error());
    if (const auto last = session->lastStep(); !last) {
        if (counts->events == 0 && counts->ops == 0 && gpuFigures(*session).is_null())
            return fail(last.error());
        return printRecorded(*session, *counts, arguments.file, arguments.device, common);
    }
    if (!arguments.device.empty())
        return fail({ErrorCode::Usage, "--device is for traces without a step",
                     "a recorded step has one curve; leave --device out"});

    const auto step = graphOfStep(*session, arguments.file, arguments.step, costs);
    if (!step) return fail(step.error());
    if (common.json)
        answerStep(*session, *step, *counts);
    else
        printStep(*session, *step, *counts, arguments.file);
    return 0;
}

}  // namespace

void addInfo(CLI::App& app, Common& common) {
    auto* command = addCommand(app, common, "info",
                               "What a session holds: counts, baseline, categories at the peak");
    auto arguments = std::make_shared<InfoArguments>();
    command->add_option("SESSION", arguments->file, "A session or an importable file")->required();
    command->add_option("--step", arguments->step, "The step (default: the last complete one)");
    command->add_option("--costs", arguments->costs,
                        "captured or measured (default: measured where present)");
    command
        ->add_option("--by", arguments->by,
                     "What made the memory at the peak and what is saved for the backward, by "
                     "line, file, function or layer")
        ->check(CLI::IsMember(kOriginKeys));
    command->add_option("--device", arguments->device,
                        "Of a trace without a step: whose memory, as info names it (default: the "
                        "device with the highest peak)");
    command->add_flag("--ranks", arguments->ranks,
                      "The last step of each rank side by side: peak, op time, how long it waits "
                      "for others, and which rank decides");
    command->callback([arguments, &common] { common.exitCode = run(*arguments, common); });
}

}  // namespace hw::app
