// SPDX-License-Identifier: GPL-3.0-or-later
#include <iostream>

#include "app/cli.h"
#include "core/base/file.h"
#include "core/export/csv.h"
#include "core/export/perfetto.h"
#include "core/import/import.h"
#include "core/memory/evaluate.h"
#include "planners/checkpoints/export_plan.h"

namespace hw::app {
namespace {

using namespace hw::core;

struct ExportArguments {
    std::string file, format, output, table, plan, session;
    std::optional<std::int64_t> step;
};

Status exportSession(const ExportArguments& arguments) {
    auto session = openAny(arguments.file);
    if (!session) return session.error();
    if (arguments.format == "perfetto") return exportPerfetto(*session, arguments.output);
    if (!arguments.table.empty())
        return exportCsvTable(*session, arguments.table, arguments.output);
    return exportCsv(*session, arguments.output);
}

/// The plan and the session that it is for: named, or the last one that the session keeps.
struct Source {
    std::string session;
    Plan plan;
    std::optional<std::int64_t> step;
};
Result<Source> findPlan(const ExportArguments& arguments) {
    Source source{arguments.file, {}, arguments.step};
    std::string planFile = arguments.plan;
    if (planFile.empty() && isPlanFile(arguments.file)) {
        if (arguments.session.empty())
            return Error{ErrorCode::Usage, "a plan alone names no ops and no layers",
                         "name its session with --session"};
        source.session = arguments.session;
        planFile = arguments.file;
    }
    if (!planFile.empty()) {
        auto plan = readPlanFile(planFile);
        if (!plan) return plan.error();
        source.plan = std::move(*plan);
        return source;
    }
    auto session = openAny(source.session);
    if (!session) return session.error();
    auto plans = session->plans();
    if (!plans) return plans.error();
    if (arguments.step)
        std::erase_if(*plans, [&](const PlanRow& row) { return row.step != *arguments.step; });
    if (plans->empty())
        return badInput("'" + source.session + "' keeps no plan",
                        "make one with 'highwater plan --save', or name a plan file with --plan");
    source.plan = std::move(plans->back().plan);
    source.step = plans->back().step;
    return source;
}

Status exportPlan(const ExportArguments& arguments, Json& told) {
    const auto source = findPlan(arguments);
    if (!source) return source.error();
    const auto step = loadStep(source->session, source->step, source->plan.costs);
    if (!step) return step.error();
    if (Status same = requireSameGraph(source->plan, step->graph); !same) return same;
    if (Status valid = requireValid(evaluate(step->graph, source->plan.schedule)); !valid)
        return valid;
    if (arguments.format == "layers")
        return writeFileAtomically(arguments.output,
                                   planners::exportLayers(step->graph, source->plan));
    const auto policy = planners::exportPolicy(step->graph, source->plan);
    if (!policy) return policy.error();
    told["expected_peak_bytes"] = policy->peak.count();
    told["expected_time_ns"] = policy->time.count();
    told["baseline"] = {{"peak_bytes", policy->baselinePeak.count()},
                        {"time_ns", policy->baselineTime.count()}};
    return writeFileAtomically(arguments.output, policy->text);
}

int run(const ExportArguments& arguments, const Common& common) {
    const bool ofPlan = arguments.format == "torch-policy" || arguments.format == "layers";
    if (!arguments.table.empty() && arguments.format != "csv")
        return fail({ErrorCode::Usage, "--table is for --to csv", "leave it out"});
    Json told{{"file", arguments.output}, {"format", arguments.format}};
    const Status done = ofPlan ? exportPlan(arguments, told) : exportSession(arguments);
    if (!done) return fail(done.error());
    if (common.json)
        answerWith(told);
    else
        std::cout << arguments.output << " written\n";
    if (!common.json && told.contains("expected_peak_bytes"))
        std::cout << "  expected peak " << told["expected_peak_bytes"] << " of "
                  << told["baseline"]["peak_bytes"] << " bytes, expected step time "
                  << percent(told["expected_time_ns"].get<double>() /
                             told["baseline"]["time_ns"].get<double>())
                  << "\n";
    return 0;
}

}  // namespace

void addExport(CLI::App& app, Common& common) {
    auto* command = addCommand(app, common, "export",
                               "Write a session or a plan for other tools: Perfetto, CSV, PyTorch");
    auto arguments = std::make_shared<ExportArguments>();
    command
        ->add_option("FILE", arguments->file,
                     "A session, an importable file, or a plan (then name its --session)")
        ->required();
    command->add_option("--to", arguments->format, "perfetto, csv, torch-policy or layers")
        ->required()
        ->check(CLI::IsMember({"perfetto", "csv", "torch-policy", "layers"}));
    command
        ->add_option("-o,--output", arguments->output,
                     "The file to write; csv without --table: a folder, a file for every table")
        ->required();
    command->add_option("--table", arguments->table, "csv: this table only");
    command->add_option(
        "--plan", arguments->plan,
        "torch-policy, layers: the plan (default: the last one that the session keeps)");
    command->add_option("--session", arguments->session, "The session of a plan given as FILE");
    command->add_option("--step", arguments->step, "The step of the plan");
    command->callback([arguments, &common] { common.exitCode = run(*arguments, common); });
}

}  // namespace hw::app
