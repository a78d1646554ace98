// SPDX-License-Identifier: GPL-3.0-or-later
// What all commands share: output, errors, budgets, progress, opening a session and its step.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/base/parse_bytes.h"
#include "core/base/result.h"
#include "core/base/units.h"
#include "core/import/load_step.h"
#include "core/memory/caching_allocator.h"
#include "core/session/session.h"
#include "planners/plan_with.h"

namespace hw::app {

using Json = nlohmann::ordered_json;

/// Options that every command has, and the exit code that the chosen one leaves behind.
struct Common {
    bool json = false;
    int exitCode = 0;
    std::vector<std::string> program;  // after "--": what is to be started, and its arguments
};

// One per command; each adds its subcommand and sets `common.exitCode` when it runs.
void addCategorize(CLI::App& app, Common& common);
void addCheck(CLI::App& app, Common& common);
void addCompletion(CLI::App& app, Common& common);
void addDiff(CLI::App& app, Common& common);
void addDoctor(CLI::App& app, Common& common);
void addExport(CLI::App& app, Common& common);
void addFit(CLI::App& app, Common& common);
void addImport(CLI::App& app, Common& common);
void addInfo(CLI::App& app, Common& common);
void addJoin(CLI::App& app, Common& common);
void addLayout(CLI::App& app, Common& common);
void addManual(CLI::App& app, Common& common);
void addPlan(CLI::App& app, Common& common);
void addPlanRegion(CLI::App& app, Common& common);
void addPlanSizes(CLI::App& app, Common& common);
void addPlanStep(CLI::App& app, Common& common);
void addReplayDtr(CLI::App& app, Common& common);
void addRecord(CLI::App& app, Common& common);
void addAttach(CLI::App& app, Common& common);
void addDetach(CLI::App& app, Common& common);
void addList(CLI::App& app, Common& common);
void addReport(CLI::App& app, Common& common);
void addRun(CLI::App& app, Common& common);
void addSweep(CLI::App& app, Common& common);
void addShot(CLI::App& app, Common& common);
void addTrain(CLI::App& app, Common& common);
void addApply(CLI::App& app, Common& common);
void addRelease(CLI::App& app, Common& common);
void addView(CLI::App& app, Common& common);
/// The window with nothing to show yet: `highwater` without arguments.
int openWindow();

/// A subcommand with --json.
CLI::App* addCommand(CLI::App& app, Common& common, const std::string& name,
                     const std::string& description);

/// Checks a number: above 0 and at most `most`, so neither "nan" nor "inf".
CLI::Validator positive(double most);
/// Shares of a peak, seconds, device pixels per pixel: more than is ever meant.
constexpr double kMostRatio = 1000, kMostSeconds = 1e9, kMostScale = 100;

/// --dealloc, of the dtr planners.
void addDealloc(CLI::App& command, std::string& value);

/// From now on errors are told on stdout, too: --json was given.
void answerInJson();
/// Prints `highwater: error: …` and `hint: …` to stderr, and adds `"error": {code, what, hint}` to
/// what --json prints; returns the exit code.
int fail(const core::Error& error);
/// Keeps the one JSON object that the command answers with; it is printed when the command is done.
void answerWith(const Json& value);
/// Prints it, if there is one.
void writeAnswer();
/// Its highest figures, as `layout` and `info` tell them.
Json cachingAllocatorJson(const core::CachingAllocatorStats& stats);

using core::parseBytes;

/// Progress on a terminal's stderr; Ctrl-C cancels the work instead of killing the program.
planners::Progress terminalProgress();
void clearProgress();

using core::graphOfStep;
using core::LoadedStep;
using core::loadStep;
using core::StepGraph;
/// By its name and content.
bool isPlanFile(const std::string& path);
/// "captured" or "measured". Errors: Usage.
core::Result<core::CostSet> parseCosts(const std::string& name);

std::string percent(double overhead);  // 1.107 -> "+10.7 %"
Json outcomeJson(const planners::Outcome& outcome);

/// The baseline's figures, as `info` and `fit` tell them.
Json baselineJson(const core::TrainingGraph& graph, const core::Evaluation& baseline);
/// Bytes of each category that are resident at the baseline's peak; none is 0.
std::map<std::string, core::Bytes> categoriesAtPeak(const core::TrainingGraph& graph,
                                                    const core::Evaluation& baseline);
Json categoriesJson(const std::map<std::string, core::Bytes>& categories);

}  // namespace hw::app
