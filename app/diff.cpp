// SPDX-License-Identifier: GPL-3.0-or-later
#include <iostream>
#include <set>

#include "app/cli.h"
#include "core/export/checkpoint_plan.h"
#include "core/memory/evaluate.h"

namespace hw::app {
namespace {

using namespace hw::core;

struct DiffArguments {
    std::string a, b, session;
    std::optional<std::int64_t> stepA, stepB;
};

/// What differs, in order; what is the same is left out.
class Differences {
public:
    template <class Value>
    void add(const std::string& what, const Value& a, const Value& b) {
        if (a != b) list.push_back({{"what", what}, {"a", a}, {"b", b}});
    }
    Json list = Json::array();
};

std::map<std::string, std::int64_t> categoriesAtPeak(const LoadedStep& step) {
    std::map<std::string, std::int64_t> bytes;
    for (const StorageIndex s :
         residentDuring(step.graph, baselineSchedule(step.graph), step.baseline.peakAction)) {
        const Storage& storage = step.graph.storages[s];
        bytes[std::string(categoryName(storage.category))] += storage.bytes.count();
    }
    return bytes;
}

struct LayerFigures {
    std::int64_t ops = 0, activations = 0;
    auto operator<=>(const LayerFigures&) const = default;
};

std::map<std::string, LayerFigures> layerFigures(const TrainingGraph& graph) {
    std::map<std::string, LayerFigures> figures;
    for (const LayerPlan& row : layerPlans(graph, baselineSchedule(graph)))
        figures[graph.layers[row.layer].path] = {row.forwardOps,
                                                 (row.retained + row.dropped).count()};
    return figures;
}

void compareOps(const TrainingGraph& a, const TrainingGraph& b, Differences& found) {
    const std::size_t shared = std::min(a.ops.size(), b.ops.size());
    for (std::size_t i = 0; i < shared; ++i)
        if (a.ops[i].name != b.ops[i].name)
            return found.add("op " + std::to_string(i) + ", the first other one", a.ops[i].name,
                             b.ops[i].name);
}

void compareLayers(const TrainingGraph& a, const TrainingGraph& b, Differences& found) {
    auto left = layerFigures(a), right = layerFigures(b);
    for (const auto& [path, figures] : left) right.try_emplace(path);
    for (const auto& [path, figures] : right) {
        const LayerFigures& other = left[path];
        found.add("layer " + path + ": forward_ops", other.ops, figures.ops);
        found.add("layer " + path + ": activation_bytes", other.activations, figures.activations);
    }
}

Result<Json> diffSessions(const DiffArguments& arguments) {
    const auto a = loadStep(arguments.a, arguments.stepA);
    if (!a) return a.error();
    const auto b = loadStep(arguments.b, arguments.stepB);
    if (!b) return b.error();
    Differences found;
    found.add("fingerprint", a->graph.fingerprint(), b->graph.fingerprint());
    found.add("framework", a->graph.framework, b->graph.framework);
    found.add("ops", a->graph.ops.size(), b->graph.ops.size());
    found.add("storages", a->graph.storages.size(), b->graph.storages.size());
    found.add("layers", a->graph.layers.size(), b->graph.layers.size());
    found.add("peak_bytes", a->baseline.peak.count(), b->baseline.peak.count());
    found.add("constant_bytes", a->graph.constantBytes().count(), b->graph.constantBytes().count());
    found.add("time_ns", a->baseline.time.count(), b->baseline.time.count());
    auto left = categoriesAtPeak(*a), right = categoriesAtPeak(*b);
    for (const auto& [name, bytes] : left) right.try_emplace(name, 0);
    for (const auto& [name, bytes] : right) found.add("at the peak: " + name, left[name], bytes);
    compareOps(a->graph, b->graph, found);
    compareLayers(a->graph, b->graph, found);
    return found.list;
}

std::set<OpIndex> recomputed(const Plan& plan) {
    std::set<OpIndex> ops;
    for (const Action& action : plan.schedule)
        if (action.recomputes()) ops.insert(action.target);
    return ops;
}

Result<Json> diffPlans(const DiffArguments& arguments, const Plan& a, const Plan& b) {
    std::optional<LoadedStep> step;
    if (!arguments.session.empty()) {
        auto loaded = loadStep(arguments.session, arguments.stepA, a.costs);
        if (!loaded) return loaded.error();
        for (const Plan* plan : {&a, &b})
            if (const Status same = requireSameGraph(*plan, loaded->graph); !same)
                return same.error();
        step.emplace(std::move(*loaded));
    }
    Differences found;
    found.add("fingerprint", a.fingerprint, b.fingerprint);
    found.add("planner", a.planner, b.planner);
    found.add("options", Json(fileOptions(a)), Json(fileOptions(b)));
    found.add("costs", std::string(costSetName(a.costs)), std::string(costSetName(b.costs)));
    found.add("budget_bytes", a.budget.count(), b.budget.count());
    found.add("peak_bytes", a.predictedPeak.count(), b.predictedPeak.count());
    found.add("time_ns", a.predictedTime.count(), b.predictedTime.count());
    found.add("overhead", a.overhead, b.overhead);
    const std::set<OpIndex> left = recomputed(a), right = recomputed(b);
    found.add("recomputed_ops", left.size(), right.size());
    if (a.fingerprint != b.fingerprint) return found.list;  // their ops are not the same ones
    std::set<OpIndex> either = left;
    either.insert(right.begin(), right.end());
    for (const OpIndex op : either) {
        std::string what = "recomputes op " + std::to_string(op);
        if (step) {
            const Op& row = step->graph.ops[op];
            what += " " + row.name;
            if (row.layer != kNone) what += " in " + step->graph.layers[row.layer].path;
        }
        found.add(what, left.contains(op), right.contains(op));
    }
    return found.list;
}

Result<Json> diff(const DiffArguments& arguments) {
    const bool planA = isPlanFile(arguments.a), planB = isPlanFile(arguments.b);
    if (planA != planB)
        return Error{ErrorCode::Usage, "one is a plan, the other a session",
                     "compare two sessions or two plans"};
    if (!planA) return diffSessions(arguments);
    const auto a = readPlanFile(arguments.a);
    if (!a) return a.error();
    const auto b = readPlanFile(arguments.b);
    if (!b) return b.error();
    return diffPlans(arguments, *a, *b);
}

/// Names of damaged files may be no UTF-8.
std::string text(const Json& value) {
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

int run(const DiffArguments& arguments, const Common& common) {
    const auto found = diff(arguments);
    if (!found) return fail(found.error());
    if (common.json) {
        answerWith({{"differences", *found}});
        return 0;
    }
    for (const Json& item : *found)
        std::cout << item["what"].get<std::string>() << ": " << text(item["a"]) << " | "
                  << text(item["b"]) << '\n';
    if (found->empty()) std::cout << "no differences\n";
    return 0;
}

}  // namespace

void addDiff(CLI::App& app, Common& common) {
    auto* command =
        addCommand(app, common, "diff", "What differs between two sessions or two plans");
    auto arguments = std::make_shared<DiffArguments>();
    command->add_option("A", arguments->a, "A session, an importable file, or a plan")->required();
    command->add_option("B", arguments->b, "Another one of the same kind")->required();
    command->add_option("--session", arguments->session,
                        "Of two plans: the session that names their ops");
    command->add_option("--step", arguments->stepA,
                        "The step of A, or of --session (default: the last complete one)");
    command->add_option("--step-b", arguments->stepB, "The step of B");
    command->callback([arguments, &common] { common.exitCode = run(*arguments, common); });
}

}  // namespace hw::app
