// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "core/base/error_json.h"
#include "core/base/utf8.h"
#include "core/import/import.h"
#include "core/memory/evaluate.h"

namespace hw::app {
namespace {

volatile std::sig_atomic_t interrupted = 0;
bool progressShown = false;
std::optional<Json> answer;  // where --json was given: what the command has to say, or {}

Json optionalCount(const std::optional<core::Nanoseconds>& time) {
    return time ? Json(time->count()) : Json(nullptr);
}

/// Of options that name files.
void addFiles(const CLI::App& command, std::initializer_list<const char*> names,
              std::vector<std::string>& files) {
    for (const char* name : names)
        if (const CLI::Option* option = command.get_option_no_throw(name))
            files.insert(files.end(), option->results().begin(), option->results().end());
}

/// The same file, or one that a folder of tables or of plans would replace.
bool isWrittenOver(const std::string& input, const std::string& output) {
    std::error_code error;
    const std::filesystem::path file(input);
    if (!std::filesystem::is_regular_file(file, error)) return false;
    if (std::filesystem::equivalent(file, output, error)) return true;
    return (input.ends_with(".csv") || input.ends_with(".plan.json")) &&
           std::filesystem::is_directory(output, error) &&
           std::filesystem::equivalent(std::filesystem::absolute(file).parent_path(), output,
                                       error);
}

/// Two files of one name.
bool areOne(const std::string& a, const std::string& b) {
    std::error_code error;
    const auto place = [&](const std::string& path) {
        return std::filesystem::weakly_canonical(std::filesystem::absolute(path), error);
    };
    return place(a) == place(b) &&
           (!std::filesystem::exists(a, error) || std::filesystem::is_regular_file(a, error));
}

/// Writing over what is read would leave neither. `program`: what is started reads its own files.
/// Throws what is told as a usage error.
void refuseToOverwriteInput(const CLI::App& command, const std::vector<std::string>& program) {
    std::vector<std::string> inputs = program, outputs;
    for (const CLI::Option* option : command.get_options([](const CLI::Option*) { return true; }))
        if (option->get_positional())
            inputs.insert(inputs.end(), option->results().begin(), option->results().end());
    addFiles(command, {"--with", "--session", "--rules", "--menu", "--join"}, inputs);
    addFiles(command, {"--output", "--csv", "--report", "--progress"}, outputs);
    // `fit` writes a plan, the others read some.
    addFiles(command, {"--plan"}, command.get_name() == "fit" ? outputs : inputs);
    for (const std::string& output : outputs)
        for (const std::string& input : inputs)
            if (isWrittenOver(input, output))
                throw CLI::ValidationError("'" + input + "' is read: it is not written over");
    for (std::size_t i = 0; i < outputs.size(); ++i)
        for (std::size_t j = 0; j < i; ++j)
            if (areOne(outputs[i], outputs[j]))
                throw CLI::ValidationError("'" + outputs[i] + "' cannot hold both results");
}

}  // namespace

CLI::App* addCommand(CLI::App& app, Common& common, const std::string& name,
                     const std::string& description) {
    CLI::App* command = app.add_subcommand(name, description);
    command->add_flag("--json", common.json,
                      "Print one JSON object on stdout and nothing else there");
    command->parse_complete_callback(
        [command, &common] { refuseToOverwriteInput(*command, common.program); });
    return command;
}

CLI::Validator positive(double most) {
    return CLI::Validator(
        [most](std::string& text) {
            double value = 0;
            const bool fits = CLI::detail::lexical_cast(text, value) && value > 0 && value <= most;
            return fits ? std::string() : "'" + text + "' is not a number above 0";
        },
        "");
}

void addDealloc(CLI::App& command, std::string& value) {
    command
        .add_option("--dealloc", value,
                    "DTR: what the program has dropped is evicted (eager, default) or freed for "
                    "good (banish)")
        ->check(CLI::IsMember({"eager", "banish"}));
}

void answerInJson() {
    answer = Json::object();
}

int fail(const core::Error& error) {
    clearProgress();
    if (answer && !answer->contains("error")) (*answer)["error"] = core::errorJson(error);
    return core::printError(error);
}

void answerWith(const Json& value) {
    answer = value;
}

void writeAnswer() {
    if (!answer || answer->empty()) return;
    // Names and fragments of damaged files may be no UTF-8, or what a terminal obeys.
    const std::string text = answer->dump(-1, ' ', false, Json::error_handler_t::replace);
    core::forEachCharacter(text, [](std::string_view sequence, std::optional<char32_t> character) {
        char escape[8];
        if (!character || !core::isHarmful(*character)) {
            std::cout << sequence;
            return;
        }
        std::snprintf(escape, sizeof(escape), "\\u%04x", static_cast<unsigned>(*character));
        std::cout << escape;
    });
    std::cout << std::endl;
}

Json cachingAllocatorJson(const core::CachingAllocatorStats& stats) {
    return {{"reserved_bytes", stats.peakReserved.count()},
            {"allocated_bytes", stats.peakAllocated.count()},
            {"fragmentation", stats.fragmentation()}};
}

planners::Progress terminalProgress() {
    std::signal(SIGINT, [](int) { interrupted = 1; });
    planners::Progress progress;
    progress.cancelled = [] { return interrupted != 0; };
    if (isatty(STDERR_FILENO) != 0)
        progress.report = [](double fraction, std::string_view what) {
            progressShown = true;
            std::fprintf(stderr, "\r\033[K%3.0f %% %.*s", fraction * 100,
                         static_cast<int>(what.size()), what.data());
        };
    return progress;
}

void clearProgress() {
    if (std::exchange(progressShown, false)) std::fputs("\r\033[K", stderr);
}

bool isPlanFile(const std::string& path) {
    return path.ends_with(".json") && core::readPlanFile(path);
}

core::Result<core::CostSet> parseCosts(const std::string& name) {
    if (name == "captured") return core::CostSet::Captured;
    if (name == "measured") return core::CostSet::Measured;
    return core::Error{core::ErrorCode::Usage, "there are no costs '" + name + "'",
                       "use captured or measured"};
}

std::string percent(double overhead) {
    char text[32];
    std::snprintf(text, sizeof text, "%+.2f %%", (overhead - 1) * 100);
    return text;
}

Json outcomeJson(const planners::Outcome& outcome) {
    Json json{{"planner", outcome.planner},
              {"status", planners::planStatusName(outcome.status)},
              {"budget_bytes", outcome.budget.count()},
              {"peak_bytes", outcome.peak.count()},
              {"time_ns", outcome.time.count()},
              {"overhead", outcome.overhead},
              {"recomputed_ops", outcome.recomputedOps},
              {"host_peak_bytes", outcome.hostPeak.count()},
              {"offloaded_bytes", outcome.offloadedBytes.count()},
              {"waited_ns", outcome.waited.count()},
              {"lower_bound_ns", optionalCount(outcome.lowerBound)},
              {"gap", outcome.gap ? Json(*outcome.gap) : Json(nullptr)},
              {"solve_seconds", outcome.solveSeconds}};
    for (const auto& [key, value] : outcome.figures)
        if (key != "peak") json[key] = value;
    if (!outcome.reason.empty()) json["reason"] = outcome.reason;
    return json;
}

Json baselineJson(const core::TrainingGraph& graph, const core::Evaluation& baseline) {
    return {{"peak_bytes", baseline.peak.count()},
            {"time_ns", graph.totalTime().count()},
            {"constant_bytes", graph.constantBytes().count()},
            {"constant_peak_bytes", graph.constantPeak().count()},
            {"bottleneck_bytes", graph.bottleneckBytes().count()}};
}

std::map<std::string, core::Bytes> categoriesAtPeak(const core::TrainingGraph& graph,
                                                    const core::Evaluation& baseline) {
    const core::Schedule schedule = core::baselineSchedule(graph);
    const std::size_t at = baseline.peakAction;
    std::map<std::string, core::Bytes> bytes;
    for (const core::StorageIndex s : core::residentDuring(graph, schedule, at)) {
        const core::Storage& storage = graph.storages[s];
        bytes[std::string(categoryName(storage.category))] += storage.bytes;
    }
    if (schedule[at].runsOp())
        if (const core::Bytes workspace = graph.ops[schedule[at].target].workspace;
            workspace > core::Bytes(0))
            bytes["workspace"] += workspace;
    return bytes;
}

Json categoriesJson(const std::map<std::string, core::Bytes>& categories) {
    Json json = Json::object();
    for (const auto& [name, bytes] : categories) json[name] = bytes.count();
    return json;
}

}  // namespace hw::app
