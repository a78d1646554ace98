// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/host_memory.h"

#include <fstream>

#include "planners/registry.h"

namespace hw::app {

using namespace hw::core;

namespace {

/// Half of the memory that the system could give now.
Bytes halfOfFreeMemory() {
    std::ifstream file("/proc/meminfo");
    std::string name, unit;
    std::int64_t kib = 0;
    while (file >> name >> kib && std::getline(file, unit))
        if (name == "MemAvailable:") return Bytes(kib * 1024 / 2);
    return Bytes(0);
}

Result<Link> parseLink(const std::string& text) {
    const std::string perSecond = "/s";
    const std::size_t end = text.size() < perSecond.size() ? 0 : text.size() - perSecond.size();
    const auto bytes = parseBytes(
        text.compare(end, perSecond.size(), perSecond) == 0 ? text.substr(0, end) : text);
    if (!bytes)
        return Error{ErrorCode::Usage, "'" + text + "' is no speed of a link",
                     "write 25GB/s, or a number of bytes a second"};
    Link link;
    link.outPerSecond = link.inPerSecond = *bytes;
    return link;
}

}  // namespace

void addHostMemory(CLI::App& command, HostMemoryWords& words) {
    command
        .add_option("--offload", words.offload,
                    "on: storages that are idle may wait in host memory, beside recomputation "
                    "(default: off)")
        ->check(CLI::IsMember({"on", "off"}));
    command.add_option("--host-memory", words.hostMemory,
                       "Most bytes that may wait there (default: half of what is free here)");
    command.add_option("--link", words.link,
                       "Bytes a second that are copied there, and as many back (default: 25GB/s)");
}

Status requestHostMemory(const HostMemoryWords& words, const std::string& planner,
                         TrainingGraph& graph, planners::PlanRequest& request) {
    const planners::PlannerInfo* const info = planners::findPlanner(planner);
    const bool given = !(words.hostMemory + words.link).empty();
    if (info == nullptr || !info->offloads || words.offload == "off") {
        if (words.offload == "on" || (given && words.offload.empty()))
            return Error{ErrorCode::Usage, planner + " does not offload",
                         "leave out --offload, --host-memory and --link, or add --planner " +
                             planners::ownPlanner().name};
        return {};
    }
    if (!info->needsHostMemory && words.offload.empty() && !given) return {};
    request.hostMemory = halfOfFreeMemory();
    if (!words.hostMemory.empty()) {
        const auto bytes = parseBytes(words.hostMemory);
        if (!bytes) return bytes.error();
        request.hostMemory = *bytes;
    }
    if (words.link.empty()) return {};
    const auto link = parseLink(words.link);
    if (!link) return link.error();
    graph.link = *link;
    return {};
}

std::string offloadedText(const planners::Outcome& outcome) {
    if (outcome.offloadedBytes == Bytes(0)) return {};
    return "; " + humanBytes(outcome.offloadedBytes) + " offloaded, " +
           humanBytes(outcome.hostPeak) + " in host memory at most, " + humanTime(outcome.waited) +
           " waited";
}

}  // namespace hw::app
