// SPDX-License-Identifier: GPL-3.0-or-later
#include <chrono>
#include <iostream>

#include "app/cli.h"
#include "app/host_memory.h"
#include "app/menu.h"
#include "app/plan_ranks.h"
#include "core/base/freed_memory.h"
#include "core/memory/plan_layout.h"
#include "core/plan/implementations.h"
#include "core/session/load_menu.h"
#include "core/session/session_writer.h"
#include "core/session/signatures.h"
#include "planners/fit_arena.h"
#include "planners/registry.h"
#include "planners/smallest_budget.h"

namespace hw::app {
namespace {

using namespace hw::core;

struct PlanArguments {
    std::string file, planner = planners::ownPlanner().name, budget, output, costs, dealloc;
    std::vector<std::string> options;  // name=value
    std::optional<double> ratio, timeLimit;
    std::optional<std::int64_t> step, workLimit;
    std::uint64_t seed = 0;
    double thrashLimit = 2.0;
    std::string fit = "peak", ranks;
    bool layout = false, save = false, each = false, spare = false;
    MenuArguments menu;
    HostMemoryWords hostMemory;
};

Result<Bytes> budgetOf(const PlanArguments& arguments, Bytes baselinePeak) {
    if (!arguments.budget.empty()) return parseBytes(arguments.budget);
    if (*arguments.ratio <= 0)
        return Error{ErrorCode::Usage, "the ratio must be above 0",
                     "0.5 is half of the baseline's peak"};
    return Bytes(
        static_cast<std::int64_t>(static_cast<double>(baselinePeak.count()) * *arguments.ratio));
}

// Of --options and --dealloc, which is the same as --options dealloc=…
Result<std::map<std::string, std::string>> optionsOf(const PlanArguments& arguments) {
    std::map<std::string, std::string> options;
    for (const std::string& given : arguments.options) {
        const std::size_t equals = given.find('=');
        if (equals == std::string::npos || equals == 0)
            return Error{ErrorCode::Usage, "'" + given + "' is no option of a planner",
                         "options are written name=value"};
        options[given.substr(0, equals)] = given.substr(equals + 1);
    }
    if (!arguments.dealloc.empty()) options["dealloc"] = arguments.dealloc;
    if (const Status known = planners::checkOptions(arguments.planner, options); !known)
        return known.error();
    return options;
}

// Where the plan was asked for: in a file, and in the session, where the window and `export` find
// it.
Status keep(const PlanArguments& arguments, const planners::Outcome& outcome, std::int64_t step) {
    if (!arguments.output.empty()) HW_TRY(writePlanFile(*outcome.plan, arguments.output));
    if (!arguments.save) return {};
    auto session = SessionWriter::open(arguments.file);
    if (!session) return session.error();
    PlanRow row;
    row.step = step;
    row.createdNs = std::chrono::duration_cast<std::chrono::nanoseconds>(
                        std::chrono::system_clock::now().time_since_epoch())
                        .count();
    row.plan = *outcome.plan;
    row.recomputedOps = outcome.recomputedOps;
    row.solveSeconds = outcome.solveSeconds;
    HW_TRY(session->insert(row));
    return {};
}

// With the allocations of the implementations that the plan chose, as far as they are known.
Result<AddressLayout> layoutUnder(const Plan& plan, LoadedStep& step) {
    const auto signatures = loadSignaturesUnder(step.session, step.graph, plan.chosen);
    if (!signatures) return signatures.error();
    const auto graph = applyImplementations(step.graph, plan.chosen, plan.implementations);
    if (!graph) return graph.error();
    return layOut(*graph, plan.schedule, {}, &*signatures);
}

int noPlan(const PlanArguments& arguments, const LoadedStep& step, const planners::Outcome& outcome,
           planners::PlanRequest request, const Common& common) {
    // In what is left of the limit, and little more.
    constexpr double kSeconds = 10, kBeyond = 0.1;
    const double limit = request.timeLimitSeconds.value_or(kSeconds);
    request.timeLimitSeconds = std::max(0.0, limit - outcome.solveSeconds) + kBeyond * limit;
    if (planners::findPlanner(arguments.planner)->takesOption("search"))
        request.options["search"] = "first";
    std::optional<Bytes> enough;
    if (outcome.status != planners::PlanStatus::Cancelled)
        enough =
            planners::smallestBudget(arguments.planner, step.graph, request, terminalProgress());
    clearProgress();
    Json json = outcomeJson(outcome);
    json["smallest_budget_bytes"] = enough ? Json(enough->count()) : Json(nullptr);
    // Constants may be away as well while nothing reads them.
    const Bytes floor = request.hostMemory ? step.graph.bottleneckBytes() : step.graph.floorBytes();
    json["floor_bytes"] = floor.count();
    if (common.json) answerWith(json);
    std::string hint = "no plan at all fits below " + humanBytes(floor);
    if (enough)
        hint = "the smallest budget at which " + arguments.planner + " finds a plan is about " +
               humanBytes(*enough) + " (--budget " + std::to_string(enough->count()) + "); " + hint;
    return fail({ErrorCode::NoPlan,
                 arguments.planner + " has no plan within " + humanBytes(outcome.budget) + " (" +
                     std::string(planners::planStatusName(outcome.status)) + "): " + outcome.reason,
                 hint});
}

/// What the options say, but for budget and menu.
planners::PlanRequest requestOf(const PlanArguments& arguments,
                                std::map<std::string, std::string> options) {
    planners::PlanRequest request;
    request.timeLimitSeconds = arguments.timeLimit;
    request.workLimit = arguments.workLimit;
    request.seed = arguments.seed;
    request.thrashLimit = arguments.thrashLimit;
    request.options = std::move(options);
    return request;
}

int runRanks(const PlanArguments& arguments, std::optional<CostSet> costs,
             planners::PlanRequest request, const Common& common) {
    if (arguments.output.empty())
        return fail({ErrorCode::Usage, "--ranks needs a folder for its plans",
                     "write: highwater plan run.hws --ranks all --ratio 0.7 -o plans/"});
    if (arguments.step || arguments.layout || arguments.save || arguments.fit == "arena" ||
        planners::findPlanner(arguments.planner)->takesMenu)
        return fail(
            {ErrorCode::Usage,
             "--ranks plans the last step of each rank within its peak, without a layout or "
             "a menu, and only writes files",
             "leave out --step, --layout, --save and --fit, or plan the steps one by one"});
    return planRanks(
        {arguments.file, arguments.planner, arguments.output, costs, std::move(request),
         [&](Bytes peak) { return budgetOf(arguments, peak); }, arguments.each, arguments.spare},
        common);
}

Status checkOptions(const PlanArguments& arguments) {
    const auto refused = [](const std::string& what, const std::string& hint) {
        return Error{ErrorCode::Usage, what, hint};
    };
    if (arguments.budget.empty() == !arguments.ratio.has_value())
        return refused("exactly one of --budget and --ratio is needed",
                       "for example --ratio 0.6, or --budget 4GiB");
    if (const auto known = planners::makePlanner(arguments.planner); !known) return known.error();
    const planners::PlannerInfo& planner = *planners::findPlanner(arguments.planner);
    if (!arguments.dealloc.empty() && !planner.takesOption("dealloc"))
        return refused("--dealloc is an option of the dtr planners",
                       "leave it out, or choose one of them with --planner");
    if (!(arguments.menu.file + arguments.menu.use).empty() && !planner.takesMenu) {
        const std::string choosing = planners::plannersWith(&planners::PlannerInfo::takesMenu);
        return refused("--menu and --use are options of " + choosing,
                       "leave them out, or add --planner " + choosing);
    }
    if (arguments.ranks.empty() && (arguments.each || arguments.spare))
        return refused("--each and --spare are of plans for several ranks", "add --ranks all");
    if (planner.takesMenu && arguments.fit == "arena" && arguments.ranks.empty())
        return refused(
            "--fit arena takes the workspaces as captured, " + planner.name + " chooses them",
            "plan " + planner.name + " with --layout, which tells the arena");
    return {};
}

/// `request`: with its budget.
Result<planners::Outcome> planStep(const PlanArguments& arguments, LoadedStep& step,
                                   const planners::PlanRequest& request) {
    const auto signatures = loadSignatures(step.session, step.graph);
    if (!signatures) return signatures.error();
    auto outcome =
        arguments.fit == "arena"
            ? planners::planWithinArena(arguments.planner, step.graph, request, {},
                                        terminalProgress(), &*signatures)
            : planners::planWith(arguments.planner, step.graph, request, terminalProgress());
    if (outcome && outcome->plan && arguments.layout && !outcome->plan->layout) {
        auto layout = layoutUnder(*outcome->plan, step);
        if (!layout) return layout.error();
        outcome->plan->layout = std::move(*layout);
    }
    return outcome;
}

void tell(const PlanArguments& arguments, const LoadedStep& step, const planners::Outcome& outcome,
          const Common& common) {
    if (common.json) {
        Json json = outcomeJson(outcome);
        if (outcome.plan->layout) json["arena_bytes"] = outcome.plan->layout->arena.count();
        if (!arguments.output.empty()) json["file"] = arguments.output;
        return answerWith(json);
    }
    std::cout << outcome.planner << ": peak " << humanBytes(step.baseline.peak) << " -> "
              << humanBytes(outcome.peak) << ", step time " << percent(outcome.overhead) << ", "
              << outcome.recomputedOps << " of " << step.graph.ops.size() << " ops recomputed"
              << offloadedText(outcome) << '\n';
    if (!arguments.output.empty()) std::cout << "written to " << arguments.output << '\n';
}

int run(const PlanArguments& arguments, const Common& common) {
    if (const Status right = checkOptions(arguments); !right) return fail(right.error());
    auto options = optionsOf(arguments);
    if (!options) return fail(options.error());
    std::optional<CostSet> costs;
    if (!arguments.costs.empty()) {
        const auto parsed = parseCosts(arguments.costs);
        if (!parsed) return fail(parsed.error());
        costs = *parsed;
    }
    planners::PlanRequest request = requestOf(arguments, std::move(*options));
    keepFreedMemory();
    if (!arguments.ranks.empty()) return runRanks(arguments, costs, std::move(request), common);
    auto step = loadStep(arguments.file, arguments.step, costs);
    if (!step) return fail(step.error());
    if (arguments.save)  // before the work is done for nothing
        if (const auto savable = SessionWriter::open(arguments.file); !savable)
            return fail(savable.error());
    const auto budget = budgetOf(arguments, step->baseline.peak);
    if (!budget) return fail(budget.error());
    request.budget = *budget;
    if (planners::findPlanner(arguments.planner)->takesMenu)
        if (const Status set = requestMenu(arguments.menu, *step, request); !set)
            return fail(set.error());
    if (const Status set =
            requestHostMemory(arguments.hostMemory, arguments.planner, step->graph, request);
        !set)
        return fail(set.error());
    const auto outcome = planStep(arguments, *step, request);
    clearProgress();
    if (!outcome) return fail(outcome.error());
    if (outcome->status != planners::PlanStatus::Ok)
        return noPlan(arguments, *step, *outcome, request, common);
    if (const Status kept = keep(arguments, *outcome, step->graph.sessionStep); !kept)
        return fail(kept.error());
    tell(arguments, *step, *outcome, common);
    return 0;
}

}  // namespace

void addPlan(CLI::App& app, Common& common) {
    auto* command = addCommand(app, common, "plan", "Plan a step within a memory budget");
    auto arguments = std::make_shared<PlanArguments>();
    std::string planners = "Who plans (default: " + planners::ownPlanner().name + "): one of",
                known;
    for (const auto& info : planners::plannerList()) {
        planners += " " + info.name;
        for (const std::string& option : info.options)
            if (known.find(option) == std::string::npos)  // one for all that share it
                known += (known.empty() ? "" : ", ") + option + " (" +
                         info.name.substr(0, info.name.find(':')) + ")";
    }
    command->add_option("SESSION", arguments->file, "A session or an importable file")->required();
    command->add_option("--planner", arguments->planner, planners);
    command->add_option("--budget", arguments->budget, "Highest peak, as 4GiB, 500MB or bytes");
    command->add_option("--ratio", arguments->ratio, "Highest peak as a share of the baseline's")
        ->check(positive(kMostRatio));
    command
        ->add_option("--time-limit", arguments->timeLimit,
                     "Seconds that a search may take (default: 10; DTR: no limit)")
        ->check(positive(kMostSeconds));
    command->add_option("--work-limit", arguments->workLimit,
                        "Units of work that a search may take instead of seconds: the same plan "
                        "each time (default: none)");
    command->add_option("--seed", arguments->seed, "Seed of a randomised planner (default: 0)");
    command
        ->add_option("--thrash-limit", arguments->thrashLimit,
                     "DTR stops above baseline time times this (default: 2)")
        ->check(positive(kMostSeconds));
    addDealloc(*command, arguments->dealloc);
    addHostMemory(*command, arguments->hostMemory);
    addMenu(*command, arguments->menu);
    addUse(*command, arguments->menu);
    command
        ->add_option("--options", arguments->options,
                     "An option of the planner, as name=value; repeatable: " + known)
        ->allow_extra_args(false);
    command
        ->add_option("--ranks", arguments->ranks,
                     "all: a plan for each rank, within one budget for each, into the folder -o; a "
                     "ratio is of the highest peak")
        ->check(CLI::IsMember({"all"}));
    command->add_flag("--each", arguments->each,
                      "With --ranks: a ratio is of each rank's own peak, the same for all");
    command->add_flag("--spare", arguments->spare,
                      "With --ranks: ranks that wait for others recompute more, as far as the step "
                      "takes no longer, and need less memory");
    command->add_option("--step", arguments->step, "The step (default: the last complete one)");
    command->add_option("--costs", arguments->costs,
                        "captured or measured (default: measured where present)");
    command
        ->add_option(
            "--fit", arguments->fit,
            "What the budget binds: peak (live bytes, default) or arena (packed, 64-byte blocks)")
        ->check(CLI::IsMember({"peak", "arena"}));
    command->add_flag("--layout", arguments->layout, "Add the address layout to the plan");
    command->add_option("-o,--output", arguments->output, "Where to write the plan (*.plan.json)");
    command->add_flag("--save", arguments->save,
                      "Keep the plan in SESSION, for the window and export; without it the file "
                      "stays as it is");
    command->callback([arguments, &common] { common.exitCode = run(*arguments, common); });
}

}  // namespace hw::app
