// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/info_by.h"

#include <cstdio>

#include "core/import/import.h"
#include "core/session/origins.h"

namespace hw::app {

using namespace hw::core;

const std::vector<std::string> kOriginKeys{"line", "file", "function", "layer"};

namespace {

OriginKey keyOf(const std::string& by) {
    return by == "line"       ? OriginKey::Line
           : by == "file"     ? OriginKey::File
           : by == "function" ? OriginKey::Function
                              : OriginKey::Layer;
}

struct Found {
    std::optional<std::int64_t> step;  // none: a trace without one
    std::string device;                // of such a trace
    std::vector<OriginGroup> groups;
};

Bytes sum(const std::vector<OriginGroup>& groups, Bytes OriginGroup::*figure) {
    Bytes total;
    for (const OriginGroup& group : groups) total += group.*figure;
    return total;
}

Json groupJson(const OriginGroup& group) {
    Json json{{"name", group.name},
              {"peak_bytes", group.peak.count()},
              {"saved_bytes", group.saved.count()},
              {"largest_bytes", group.largest.count()},
              {"largest_op", group.largestOp},
              {"storages", group.storages}};
    if (group.frame != nullptr) {
        json["file"] = group.frame->file;
        json["line"] = group.frame->line;
        json["function"] = group.frame->function;
    }
    return json;
}

void print(const std::string& by, const Found& found, bool withStacks) {
    constexpr std::size_t kMost = 40;
    std::printf("%12s %12s %12s  %s\n", "at the peak", "saved", "largest", by.c_str());
    for (std::size_t i = 0; i < std::min(kMost, found.groups.size()); ++i) {
        const OriginGroup& group = found.groups[i];
        std::printf("%12s %12s %12s  %s%s\n", humanBytes(group.peak).c_str(),
                    humanBytes(group.saved).c_str(), humanBytes(group.largest).c_str(),
                    group.name.c_str(),
                    group.largestOp.empty() ? "" : (", " + group.largestOp).c_str());
    }
    if (found.groups.size() > kMost)
        std::printf("and %zu more: --json tells all\n", found.groups.size() - kMost);
    if (!withStacks && by != "layer")
        std::printf("no call stacks were recorded: record with --stacks line or full\n");
}

int tell(const std::string& by, const Found& found, bool withStacks, const Common& common) {
    if (!common.json) {
        print(by, found, withStacks);
        return 0;
    }
    Json groups = Json::array();
    for (const OriginGroup& group : found.groups) groups.push_back(groupJson(group));
    answerWith({{"by", by},
                {"step", found.step ? Json(*found.step) : Json(nullptr)},
                {"device", found.device.empty() ? Json(nullptr) : Json(found.device)},
                {"stacks", withStacks},
                {"peak_bytes", sum(found.groups, &OriginGroup::peak).count()},
                {"saved_bytes", sum(found.groups, &OriginGroup::saved).count()},
                {"groups", groups}});
    return 0;
}

}  // namespace

int printOrigins(const std::string& file, const std::string& by, std::optional<std::int64_t> step,
                 std::optional<CostSet> costs, const std::string& device, const Common& common) {
    auto session = openAny(file);
    if (!session) return fail(session.error());
    const auto stacks = CallStacks::load(*session);
    if (!stacks) return fail(stacks.error());
    const OriginKey key = keyOf(by);
    if (!session->lastStep()) {
        const auto recorded = loadRecordedMemory(*session, RecordedDetail::Everything, device);
        if (!recorded) return fail(recorded.error());
        if (recorded->moments.empty())
            return fail(badInput("'" + file + "' holds no memory",
                                 "'highwater info' tells what it holds, and why there is none"));
        const auto atPeak = originsAtPeak(*recorded, *stacks);
        return tell(by,
                    {{}, recorded->device, originsBy(key, recorded->graph, *stacks, atPeak, {})},
                    !stacks->empty(), common);
    }
    const auto loaded = graphOfStep(*session, file, step, costs);
    if (!loaded) return fail(loaded.error());
    const TrainingGraph& graph = loaded->graph;
    return tell(by,
                {graph.sessionStep,
                 {},
                 originsBy(key, graph, *stacks, originsAtPeak(graph, loaded->baseline, *stacks),
                           originsSaved(graph, *stacks))},
                !stacks->empty(), common);
}

}  // namespace hw::app
