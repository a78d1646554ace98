// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <sstream>

#include "app/cli.h"
#include "app/info_by.h"
#include "app/info_ranks.h"
#include "core/family/predicted_session.h"
#include "core/import/import.h"
#include "core/memory/evaluate.h"
#include "core/session/device_work.h"
#include "core/session/recorded_memory.h"
#include "core/session/replay_events.h"

namespace hw::app {
namespace {

using namespace hw::core;

struct InfoArguments {
    std::string file;
    std::optional<std::int64_t> step;
    std::string costs;
    std::string by;
    bool ranks = false;
};

Json gapList(const Session& session) {
    Json list = Json::array();
    if (const auto gaps = session.gaps())
        for (const GapRow& gap : *gaps) list.push_back({{"what", gap.what}, {"why", gap.why}});
    return list;
}

/// What CUPTI told; null where nothing was recorded of a GPU.
Json gpuFigures(const Session& session) {
    const auto counts = session.deviceWorkCounts();
    if (!counts || counts->kernels + counts->copies == 0) return nullptr;
    Json figures{{"kernels", counts->kernels},
                 {"copies", counts->copies},
                 {"kernels_without_op", counts->kernelsWithoutOp}};
    if (const auto clock = session.meta("device_clock"); clock && !clock->empty())
        figures["clock"] = Json::parse(*clock, nullptr, false);
    if (const auto series = session.series())
        for (const SeriesRow& row : *series)
            if (row.key.name.ends_with(" CUPTI"))
                figures["cupti_bytes"][row.key.name] = row.maximum;
    return figures;
}

void printGpu(const Json& gpu) {
    if (gpu.is_null()) return;
    std::printf("  GPU: %lld kernels, %lld copies\n", gpu["kernels"].get<long long>(),
                gpu["copies"].get<long long>());
    if (!gpu.contains("streams")) return;
    for (const Json& stream : gpu["streams"])
        std::printf("    stream %lld busy %.1f %% of the trace\n",
                    stream["stream"].get<long long>(), stream["busy"].get<double>() * 100);
}

/// Adds how busy each stream was, from the trace's beginning to the end of its last kernel.
void addStreams(Json& gpu, const Session& session, const RecordedMemory& recorded) {
    const auto work = loadDeviceWork(session, recorded.ordinal, recorded.originNs);
    if (gpu.is_null() || !work) return;
    Nanoseconds end;
    for (const DeviceWork::Stream& stream : work->streams)
        for (const DeviceWork::Span& span : stream.spans) end = std::max(end, span.end);
    for (const DeviceWork::Stream& stream : work->streams)
        gpu["streams"].push_back({{"stream", stream.id}, {"busy", ratio(stream.busy, end)}});
}

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

void printGaps(const Session& session) {
    if (const auto gaps = session.gaps())
        for (const GapRow& gap : *gaps)
            std::printf("  gap: %s: %s\n", gap.what.c_str(), gap.why.c_str());
}

/// What a trace without a step recorded of its device's memory.
int printWithoutStep(const Session& session, const SessionCounts& counts,
                     const InfoArguments& arguments, const Common& common, const Error& error) {
    if (counts.events == 0 && counts.ops == 0) return fail(error);
    const auto recorded = loadRecordedMemory(session);
    if (!recorded) return fail(recorded.error());
    const auto events = session.memoryEvents();
    if (!events) return fail(events.error());
    const CachingAllocatorStats cached = replayEvents(*events, recorded->ordinal);
    Bytes peak, end;
    for (const RecordedMemory::Moment& moment : recorded->moments)
        peak = std::max(peak, end = moment.allocated);
    Json gpu = gpuFigures(session);
    addStreams(gpu, session, *recorded);
    if (common.json) {
        Json memory = nullptr;
        if (!recorded->moments.empty())
            memory = {{"device", recorded->device},
                      {"events", recorded->moments.size()},
                      {"peak_bytes", peak.count()},
                      {"end_bytes", end.count()},
                      {"reserved_bytes", recorded->reserved.count()},
                      {"caching_allocator", cachingAllocatorJson(cached)}};
        answerWith({{"ops", counts.ops},
                    {"tensors", counts.tensors},
                    {"storages", counts.storages},
                    {"layers", counts.layers},
                    {"steps", counts.steps},
                    {"events", counts.events},
                    {"baseline", nullptr},
                    {"categories", Json::object()},
                    {"recorded", memory},
                    {"gpu", gpu},
                    {"gaps", gapList(session)}});
        return 0;
    }
    std::printf("%s, no complete step\n", arguments.file.c_str());
    std::printf("  ops %lld, storages %lld, layers %lld\n", static_cast<long long>(counts.ops),
                static_cast<long long>(counts.storages), static_cast<long long>(counts.layers));
    if (!recorded->moments.empty())
        std::printf("  %s: %zu memory events, peak %s, at the end %s\n", recorded->device.c_str(),
                    recorded->moments.size(), humanBytes(peak).c_str(), humanBytes(end).c_str());
    if (recorded->reserved > Bytes(0))
        std::printf("  reserved from the driver: at most %s\n",
                    humanBytes(recorded->reserved).c_str());
    if (cached.peakReserved > Bytes(0))
        std::printf(
            "  PyTorch's caching allocator would reserve %s for what was allocated "
            "meanwhile, %.1f %% of it never used\n",
            humanBytes(cached.peakReserved).c_str(), cached.fragmentation() * 100);
    printGpu(gpu);
    printGaps(session);
    return 0;
}

int run(const InfoArguments& arguments, const Common& common) {
    std::optional<CostSet> costs;
    if (!arguments.costs.empty()) {
        const auto parsed = parseCosts(arguments.costs);
        if (!parsed) return fail(parsed.error());
        costs = *parsed;
    }
    if (!arguments.by.empty())
        return printOrigins(arguments.file, arguments.by, arguments.step, costs, common);
    auto session = openAny(arguments.file);
    if (!session) return fail(session.error());
    if (arguments.ranks) return printRankTimes(*session, costs, common);
    const auto counts = session->counts();
    if (!counts) return fail(counts.error());
    if (const auto last = session->lastStep(); !last)
        return printWithoutStep(*session, *counts, arguments, common, last.error());

    const auto step = graphOfStep(*session, arguments.file, arguments.step, costs);
    if (!step) return fail(step.error());
    const TrainingGraph& graph = step->graph;
    const auto categories = categoriesAtPeak(graph, step->baseline);
    if (common.json) {
        answerWith({{"ops", graph.ops.size()},
                    {"tensors", graph.tensors.size()},
                    {"storages", graph.storages.size()},
                    {"layers", graph.layers.size()},
                    {"steps", counts->steps},
                    {"events", counts->events},
                    {"baseline", baselineJson(graph, step->baseline)},
                    {"categories", categoriesJson(categories)},
                    {"step", graph.sessionStep},
                    {"costs", costSetName(graph.costs)},
                    {"fingerprint", graph.fingerprint()},
                    {"predicted", predictionOf(*session)},
                    {"ranks", ranksJson(*session)},
                    {"collectives", collectivesJson(*session, graph.sessionStep)},
                    {"gpu", gpuFigures(*session)},
                    {"gaps", gapList(*session)}});
        return 0;
    }
    std::printf("%s, step %lld of %lld recorded\n", arguments.file.c_str(),
                static_cast<long long>(graph.sessionStep), static_cast<long long>(counts->steps));
    printPrediction(predictionOf(*session));
    std::printf("  ops %zu, tensors %zu, storages %zu, layers %zu\n", graph.ops.size(),
                graph.tensors.size(), graph.storages.size(), graph.layers.size());
    std::printf("  baseline peak %s, op time %s (%s)\n", humanBytes(step->baseline.peak).c_str(),
                humanTime(graph.totalTime()).c_str(),
                std::string(costSetName(graph.costs)).c_str());
    std::printf("  constants %s, largest op %s\n", humanBytes(graph.constantBytes()).c_str(),
                humanBytes(graph.bottleneckBytes()).c_str());
    std::printf("  at the peak:");
    for (const auto& [name, bytes] : categories)
        std::printf(" %s %s;", name.c_str(), humanBytes(bytes).c_str());
    std::printf("\n");
    printGpu(gpuFigures(*session));
    printCollectives(*session, graph.sessionStep);
    printRanks(*session);
    printGaps(*session);
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
    command->add_flag("--ranks", arguments->ranks,
                      "The last step of each rank side by side: peak, op time, how long it waits "
                      "for others, and which rank decides");
    command->callback([arguments, &common] { common.exitCode = run(*arguments, common); });
}

}  // namespace hw::app
