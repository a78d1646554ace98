// SPDX-License-Identifier: MIT
// The plan file, as docs/plan-format.md describes it: format "highwater-plan".
#include "core/plan/plan.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string_view>

#include "core/base/file.h"
#include "core/base/json_integer.h"

namespace hw::core {
namespace {

using nlohmann::json;

constexpr int kFirstVersion = 1;
constexpr int kPlanVersion = [] {
    int version = kFirstVersion;
    for (const ActionTraits& traits : kActions) version = std::max(version, traits.since);
    return version;
}();
constexpr const char* kMenuOption = "menu";

json actionJson(const Action& action) {
    json item = {std::string(1, traitsOf(action.kind).code), action.target};
    if (action.kind == ActionKind::Recompute) item.push_back(action.outputs);
    if (action.kind == ActionKind::Encode) {
        item.push_back(action.encoding->codec);
        item.push_back(action.encoding->bytes.count());
    }
    return item;
}

std::optional<ActionKind> kindOf(std::string_view code) {
    for (const ActionTraits& traits : kActions)
        if (code.size() == 1 && code.front() == traits.code)
            return static_cast<ActionKind>(&traits - kActions);
    return std::nullopt;
}

std::size_t fieldsOf(ActionKind kind) {
    if (kind == ActionKind::Recompute) return 3;
    return kind == ActionKind::Encode ? 4 : 2;
}

Action parseAction(const json& item, int version) {
    const auto code = item.at(0).get<std::string>();
    const auto kind = kindOf(code);
    if (!kind || traitsOf(*kind).since > version || item.size() != fieldsOf(*kind))
        throw std::invalid_argument("'" + code + "' with " + std::to_string(item.size()) +
                                    " fields is no action of this version");
    const auto target = integerOf<std::int32_t>(item.at(1));
    if (kind == ActionKind::Encode)
        return Action::encode(target, item.at(2).get<std::string>(),
                              Bytes(integerOf<std::int64_t>(item.at(3))));
    Action action;
    action.kind = *kind;
    action.target = target;
    if (kind == ActionKind::Recompute)
        for (const json& output : item.at(2))
            action.outputs.push_back(integerOf<std::int32_t>(output));
    return action;
}

int versionOf(const Schedule& schedule) {
    int version = kFirstVersion;
    for (const Action& action : schedule) version = std::max(version, traitsOf(action.kind).since);
    return version;
}

json layoutJson(const AddressLayout& layout) {
    json constants = json::object();
    for (const auto& [storage, offset] : layout.constants)
        constants[std::to_string(storage)] = offset.count();
    json offsets = json::array();
    for (const auto& action : layout.offsets) {
        json row = json::array();
        for (const Bytes offset : action) row.push_back(offset.count());
        offsets.push_back(std::move(row));
    }
    return {{"arena_bytes", layout.arena.count()}, {"constants", constants}, {"offsets", offsets}};
}

AddressLayout parseLayout(const json& item) {
    AddressLayout layout;
    layout.arena = Bytes(integerOf<std::int64_t>(item.at("arena_bytes")));
    for (const auto& [storage, offset] : item.at("constants").items())
        layout.constants[integerOf<std::int32_t>(storage)] = Bytes(integerOf<std::int64_t>(offset));
    for (const json& row : item.at("offsets")) {
        auto& offsets = layout.offsets.emplace_back();
        for (const json& offset : row) offsets.emplace_back(integerOf<std::int64_t>(offset));
    }
    return layout;
}

// A plan's file carries the entries of a menu that it chose as an option, so that it can be judged
// without that menu.
void takeChosen(Plan& plan) {
    const auto carried = plan.options.find(kMenuOption);
    if (carried == plan.options.end() || plan.implementations.empty()) return;
    const auto menu = parseMenu(carried->second, plan.fingerprint);
    if (!menu) throw std::invalid_argument("its option 'menu': " + menu.error().what);
    plan.chosen = onlyChosen(*menu, plan.implementations);
    plan.options.erase(carried);
}

json linkJson(const Link& link) {
    return {{"out_bytes_per_second", link.outPerSecond.count()},
            {"in_bytes_per_second", link.inPerSecond.count()},
            {"latency_ns", link.latency.count()}};
}

Link parseLink(const json& item) {
    const Link link{Bytes(integerOf<std::int64_t>(item.at("out_bytes_per_second"))),
                    Bytes(integerOf<std::int64_t>(item.at("in_bytes_per_second"))),
                    Nanoseconds(integerOf<std::int64_t>(item.at("latency_ns")))};
    if (link.outPerSecond <= Bytes(0) || link.inPerSecond <= Bytes(0) ||
        link.latency < Nanoseconds(0))
        throw std::invalid_argument("its link moves no bytes");
    return link;
}

Plan parseDocument(const json& document, int version) {
    Plan plan;
    const json& graph = document.at("graph");
    plan.fingerprint = graph.at("fingerprint").get<std::string>();
    plan.ops = integerOf<std::int64_t>(graph.at("ops"));
    plan.storages = integerOf<std::int64_t>(graph.at("storages"));
    plan.planner = document.at("planner").get<std::string>();
    plan.options = document.at("options").get<std::map<std::string, std::string>>();
    plan.seed = integerOf<std::uint64_t>(document.at("seed"));
    plan.budget = Bytes(integerOf<std::int64_t>(document.at("budget_bytes")));
    const json& predicted = document.at("predicted");
    plan.predictedPeak = Bytes(integerOf<std::int64_t>(predicted.at("peak_bytes")));
    plan.predictedTime = Nanoseconds(integerOf<std::int64_t>(predicted.at("time_ns")));
    plan.overhead = predicted.at("overhead").get<double>();
    if (const json& bound = predicted.at("lower_bound_ns"); !bound.is_null())
        plan.lowerBound = Nanoseconds(integerOf<std::int64_t>(bound));
    const json& schedule = document.at("schedule");
    plan.schedule.reserve(schedule.size());
    for (std::size_t i = 0; i < schedule.size(); ++i) {
        try {
            plan.schedule.push_back(parseAction(schedule[i], version));
        } catch (const std::exception& error) {
            throw std::invalid_argument("schedule entry " + std::to_string(i) + ": " +
                                        error.what());
        }
    }
    for (const auto& [op, name] : document.at("implementations").items())
        plan.implementations[integerOf<std::int32_t>(op)] = name.get<std::string>();
    takeChosen(plan);
    const auto costs = document.at("costs").get<std::string>();
    if (costs != "captured" && costs != "measured")
        throw std::invalid_argument("costs must be 'captured' or 'measured', not '" + costs + "'");
    plan.costs = costs == "measured" ? CostSet::Measured : CostSet::Captured;
    if (version > kFirstVersion) {
        plan.link = parseLink(document.at("link"));
        if (const auto host = document.find("host_memory_bytes"); host != document.end())
            plan.hostMemory = Bytes(integerOf<std::int64_t>(*host));
    }
    if (const json& layout = document.at("layout"); !layout.is_null())
        plan.layout = parseLayout(layout);
    return plan;
}

}  // namespace

Plan emptyPlan(const TrainingGraph& graph) {
    Plan plan;
    plan.fingerprint = graph.fingerprint();
    plan.ops = static_cast<std::int64_t>(graph.ops.size());
    plan.storages = static_cast<std::int64_t>(graph.storages.size());
    plan.costs = graph.costs;
    return plan;
}

std::map<std::string, std::string> fileOptions(const Plan& plan) {
    auto options = plan.options;
    if (!plan.chosen.empty()) options[kMenuOption] = writeMenu(plan.chosen);
    return options;
}

std::string writePlan(const Plan& plan) {
    json implementations = json::object();
    for (const auto& [op, name] : plan.implementations) implementations[std::to_string(op)] = name;
    const json graph = {
        {"fingerprint", plan.fingerprint}, {"ops", plan.ops}, {"storages", plan.storages}};
    const json predicted = {
        {"peak_bytes", plan.predictedPeak.count()},
        {"time_ns", plan.predictedTime.count()},
        {"overhead", plan.overhead},
        {"lower_bound_ns", plan.lowerBound ? json(plan.lowerBound->count()) : json(nullptr)}};
    // One action a line, so that two plans can be compared with diff.
    std::ostringstream out;
    out << "{\"format\": \"highwater-plan\", \"version\": " << versionOf(plan.schedule) << ",\n"
        << " \"graph\": " << graph.dump() << ",\n"
        << " \"planner\": " << json(plan.planner).dump()
        << ", \"options\": " << json(fileOptions(plan)).dump() << ", \"seed\": " << plan.seed
        << ", \"budget_bytes\": " << plan.budget.count() << ",\n"
        << " \"predicted\": " << predicted.dump() << ",\n"
        << " \"schedule\": [";
    for (std::size_t i = 0; i < plan.schedule.size(); ++i)
        out << (i == 0 ? "\n  " : ",\n  ") << actionJson(plan.schedule[i]).dump();
    out << "],\n \"implementations\": " << implementations.dump() << ",\n \"costs\": \""
        << costSetName(plan.costs) << '"';
    if (plan.link) out << ",\n \"link\": " << linkJson(*plan.link).dump();
    if (plan.link && plan.hostMemory)
        out << ",\n \"host_memory_bytes\": " << plan.hostMemory->count();
    out << ",\n \"layout\": " << (plan.layout ? layoutJson(*plan.layout).dump() : "null") << "}\n";
    return out.str();
}

Result<Plan> parsePlan(const std::string& text) {
    try {
        const json document = json::parse(text);
        if (!document.is_object() || document.value("format", "") != "highwater-plan")
            return badInput("this is no Highwater plan",
                            "plans are written by 'highwater plan … -o F.plan.json'");
        const int version = integerAt(document, "version", 0);
        if (version < kFirstVersion || version > kPlanVersion)
            return badInput(
                "the plan has version " + std::to_string(version) +
                    ", this program reads up to version " + std::to_string(kPlanVersion),
                version > kPlanVersion ? "use a newer Highwater" : "make the plan again");
        return parseDocument(document, version);
    } catch (const std::exception& error) {
        return badInput(std::string("the plan is malformed: ") + error.what(),
                        "make it again with 'highwater plan'");
    }
}

Result<Plan> readPlanFile(const std::string& path) {
    const Result<std::string> text = readTextFile(path, "plan");
    if (!text) return text.error();
    Result<Plan> plan = parsePlan(*text);
    if (!plan) return badInput(path + ": " + plan.error().what, plan.error().hint);
    return plan;
}

Status writePlanFile(const Plan& plan, const std::string& path) {
    return writeFileAtomically(path, writePlan(plan));
}

Status requireSameGraph(const Plan& plan, const TrainingGraph& graph) {
    if (plan.fingerprint == graph.fingerprint()) return {};
    return badInput("the plan was made for another graph (" + std::to_string(plan.ops) + " ops, " +
                        std::to_string(plan.storages) + " storages; this one has " +
                        std::to_string(graph.ops.size()) + " and " +
                        std::to_string(graph.storages.size()) + ")",
                    "use the session and step that the plan was made from, or plan again");
}

}  // namespace hw::core
