// SPDX-License-Identifier: MIT
#include "executor/replay/report.h"

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
    if (difference.tensor == core::kNone && difference.storage == core::kNone && !difference.op)
        return text + ", a generator";
    text += ", output " + std::to_string(difference.output);
    if (difference.tensor != core::kNone) text += ", tensor " + std::to_string(difference.tensor);
    if (difference.storage != core::kNone)
        text +=
            " on storage " + std::to_string(difference.storage) + " (" + difference.category + ")";
    return text;
}

std::string line(const char* label, const std::string& value) {
    char padded[32];
    std::snprintf(padded, sizeof padded, "%-18s", label);
    return padded + value + '\n';
}

nlohmann::ordered_json trainingJson(const Training& training) {
    nlohmann::ordered_json json;
    json["steps"] = training.steps;
    json["losses"] = training.losses;
    json["unplanned_losses"] = training.unplannedLosses;
    json["losses_different"] = training.lossesDifferent;
    json["final_compared"] = training.finalCompared;
    json["final_different"] = training.finalDifferent;
    json["parameters_compared"] = training.parameters;
    json["parameters_moved"] = training.parametersMoved;
    json["optimizer_states_compared"] = training.optimizerStates;
    if (!training.firstDifference.empty()) json["first_difference"] = training.firstDifference;
    return json;
}

nlohmann::ordered_json opsJson(const std::vector<OpFigures>& ops) {
    auto list = nlohmann::ordered_json::array();
    for (const OpFigures& op : ops) {
        auto& row = list.emplace_back();
        row["op"] = op.op;
        row["predicted_ns"] = op.predicted.count();
        row["measured_ns"] = op.measured.count();
        if (op.recomputed > 0) {
            row["recomputed"] = op.recomputed;
            row["recomputation_predicted_ns"] = op.predictedAgain.count();
            row["recomputation_measured_ns"] = op.measuredAgain.count();
        }
        if (!op.implementation.empty()) row["implementation"] = op.implementation;
    }
    return list;
}

std::string trainingText(const Training& training) {
    std::ostringstream text;
    text << "\nstep  unplanned loss";
    if (!training.losses.empty()) text << "      planned loss";
    text << '\n';
    for (std::size_t i = 0; i < training.unplannedLosses.size(); ++i) {
        char line[64];
        std::snprintf(line, sizeof line, "%4zu  %14.9g", i, training.unplannedLosses[i]);
        text << line;
        if (i < training.losses.size()) {
            std::snprintf(line, sizeof line, "  %16.9g", training.losses[i]);
            text << line;
        }
        text << '\n';
    }
    if (training.finalCompared > 0)
        text << training.lossesDifferent << " losses differ, "
             << training.finalCompared - training.finalDifferent << " of " << training.finalCompared
             << " final states are bit-identical, among them " << training.parameters
             << " parameters (" << training.parametersMoved << " moved by the steps) and "
             << training.optimizerStates << " optimizer states\n";
    if (!training.firstDifference.empty())
        text << "first difference: " << training.firstDifference << '\n';
    return text.str();
}

}  // namespace

bool Report::same() const {
    return figures.different == 0 &&
           (!training || (training->lossesDifferent == 0 && training->finalDifferent == 0));
}

std::string toJson(const Report& report) {
    nlohmann::ordered_json json;
    json["planner"] = report.planner;
    json["device"] = report.device;
    json["predicted_peak_bytes"] = report.predictedPeak.count();
    json["measured_peak_bytes"] = report.measuredPeak.count();
    json["arena_bytes"] = report.arena.count();
    json["arena_lower_bound_bytes"] = report.arenaLowerBound.count();
    json["baseline_peak_bytes"] = report.baselinePeak.count();
    json["time_ns"] = report.time.count();
    json["baseline_time_ns"] = report.baselineTime.count();
    json["interpreter_ns_per_op"] = report.interpreterPerOp.count();
    json["outputs_compared"] = report.figures.compared;
    json["outputs_different"] = report.figures.different;
    json["outputs_nonfinite"] = report.figures.nonfinite;
    if (const auto& first = report.figures.first) {
        auto& at = json["first_difference"];
        at["op"] = first->op ? nlohmann::ordered_json(*first->op) : nlohmann::ordered_json(nullptr);
        at["name"] = first->name;
        at["layer"] = first->layer;
        at["output"] = first->output;
        const auto index = [](std::int32_t value) {
            return value == core::kNone ? nlohmann::ordered_json(nullptr)
                                        : nlohmann::ordered_json(value);
        };
        at["tensor"] = index(first->tensor);
        at["storage"] = index(first->storage);
        at["category"] = first->category;
        at["recomputed"] = first->recomputed;
    }
    json["recorded_compared"] = report.recorded.compared;
    json["recorded_different"] = report.recorded.different;
    if (report.recorded.different > 0) json["recorded_first_difference"] = report.recorded.first;
    json["implementations_chosen"] = report.chosen;
    json["compared_with"] =
        report.captured ? "captured implementations" : "the same implementations, unplanned";
    if (report.menu)
        json["implementations"] = {{"offered", report.menu->offered},
                                   {"kept", report.menu->kept},
                                   {"different", report.menu->different},
                                   {"dominated", report.menu->dominated},
                                   {"impossible", report.menu->impossible}};
    json["fallbacks"] = report.fallbacks.size();
    for (std::size_t i = 0; i < std::min(kShown, report.fallbacks.size()); ++i)
        json["fallback_list"].push_back({{"where", report.fallbacks[i].where},
                                         {"allocation", report.fallbacks[i].index},
                                         {"why", report.fallbacks[i].why}});
    json["rss_peak_bytes"] = report.residentSetPeak.count();
    json["threads"] = report.threads;
    json["notes"] = report.notes;
    if (report.training) json["training"] = trainingJson(*report.training);
    if (!report.ops.empty()) json["ops"] = opsJson(report.ops);
    return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string toText(const Report& report) {
    std::ostringstream text;
    const auto row = [&](const char* label, const std::string& value) {
        text << line(label, value);
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
    if (report.recorded.compared > 0)
        row("as recorded",
            std::to_string(report.recorded.compared - report.recorded.different) + " of " +
                std::to_string(report.recorded.compared) +
                " tensors are what the training itself left" +
                (report.recorded.different > 0 ? "; the first other one: " + report.recorded.first
                                               : std::string()));
    if (report.chosen > 0)
        row("implementations", std::to_string(report.chosen) + " ops run otherwise than captured");
    if (!report.captured)
        row("compared with",
            "the unplanned run under the same implementations: some of them sum "
            "in another order than the captured ones");
    if (const auto& menu = report.menu)
        row("implementations",
            std::to_string(menu->kept) + " measured for a menu; of " +
                std::to_string(menu->offered) + " " + std::to_string(menu->different) +
                " gave other results, " + std::to_string(menu->dominated) +
                " were neither faster nor smaller, " + std::to_string(menu->impossible) +
                " cannot take the storage that they would");
    if (report.figures.first) row("first difference", describe(*report.figures.first));
    for (std::size_t i = 0; i < std::min(kShown, report.fallbacks.size()); ++i)
        row("outside the arena", report.fallbacks[i].where + ", allocation " +
                                     std::to_string(report.fallbacks[i].index) + ": " +
                                     report.fallbacks[i].why);
    if (report.fallbacks.size() > kShown)
        row("outside the arena", std::to_string(report.fallbacks.size() - kShown) + " more");
    for (const std::string& note : report.notes) text << noteLine(note);
    if (report.training) text << trainingText(*report.training);
    return text.str();
}

std::string noteLine(const std::string& note) {
    return line("note", note);
}

core::Bytes residentSetPeak() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.rfind("VmHWM:", 0) == 0) return core::Bytes(std::stoll(line.substr(6)) * 1024);
    return {};
}

}  // namespace hw::executor
