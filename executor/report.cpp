// SPDX-License-Identifier: MIT
#include "executor/report.h"

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace hw::executor {
namespace {

constexpr std::size_t kShown = 16;  // fallbacks that are listed one by one

std::string describe(const Difference& difference) {
    std::string text = difference.recomputed ? "recomputation of " : "";
    if (difference.op) text += "op " + std::to_string(*difference.op) + " ";
    text += difference.name;
    if (!difference.layer.empty()) text += " in " + difference.layer;
    return text + ", output " + std::to_string(difference.output);
}

}  // namespace

std::string toJson(const Report& report) {
    nlohmann::ordered_json json;
    json["planner"] = report.planner;
    json["predicted_peak_bytes"] = report.predictedPeak.count();
    json["measured_peak_bytes"] = report.measuredPeak.count();
    json["arena_bytes"] = report.arena.count();
    json["arena_lower_bound_bytes"] = report.arenaLowerBound.count();
    json["baseline_peak_bytes"] = report.baselinePeak.count();
    json["time_ns"] = report.time.count();
    json["baseline_time_ns"] = report.baselineTime.count();
    json["outputs_compared"] = report.figures.compared;
    json["outputs_different"] = report.figures.different;
    json["outputs_nonfinite"] = report.figures.nonfinite;
    if (const auto& first = report.figures.first) {
        auto& at = json["first_difference"];
        at["op"] = first->op ? nlohmann::ordered_json(*first->op) : nlohmann::ordered_json(nullptr);
        at["name"] = first->name;
        at["layer"] = first->layer;
        at["output"] = first->output;
        at["recomputed"] = first->recomputed;
    }
    json["fallbacks"] = report.fallbacks.size();
    for (std::size_t i = 0; i < std::min(kShown, report.fallbacks.size()); ++i)
        json["fallback_list"].push_back({{"where", report.fallbacks[i].where},
                                         {"allocation", report.fallbacks[i].index},
                                         {"why", report.fallbacks[i].why}});
    json["rss_peak_bytes"] = report.residentSetPeak.count();
    json["threads"] = report.threads;
    json["notes"] = report.notes;
    return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string toText(const Report& report) {
    std::ostringstream text;
    const auto row = [&](const char* label, const std::string& value) {
        char padded[32];
        std::snprintf(padded, sizeof padded, "%-18s", label);
        text << padded << value << '\n';
    };
    row("planner", report.planner);
    row("predicted peak", core::humanBytes(report.predictedPeak));
    row("measured peak", core::humanBytes(report.measuredPeak));
    row("arena", core::humanBytes(report.arena));
    row("unplanned peak", core::humanBytes(report.baselinePeak));
    row("time", core::humanTime(report.time));
    row("unplanned time", core::humanTime(report.baselineTime));
    row("outputs compared", std::to_string(report.figures.compared));
    row("different", std::to_string(report.figures.different));
    row("not finite", std::to_string(report.figures.nonfinite));
    if (report.figures.first) row("first difference", describe(*report.figures.first));
    for (std::size_t i = 0; i < std::min(kShown, report.fallbacks.size()); ++i)
        row("outside the arena", report.fallbacks[i].where + ", allocation " +
                                     std::to_string(report.fallbacks[i].index) + ": " +
                                     report.fallbacks[i].why);
    if (report.fallbacks.size() > kShown)
        row("outside the arena", std::to_string(report.fallbacks.size() - kShown) + " more");
    for (const std::string& note : report.notes) row("note", note);
    return text.str();
}

core::Bytes residentSetPeak() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.rfind("VmHWM:", 0) == 0) return core::Bytes(std::stoll(line.substr(6)) * 1024);
    return {};
}

}  // namespace hw::executor
