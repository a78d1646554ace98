// SPDX-License-Identifier: GPL-3.0-or-later
#include <iostream>

#include "app/recording.h"
#include "profiler/attach/attach.h"
#include "profiler/attach/preflight.h"

namespace hw::app {
namespace {

int runAttach(const profiler::AttachOptions& options, const Common& common) {
    const auto summary = profiler::attach(options, toTerminal);
    if (!summary) return fail(summary.error());
    return tell(*summary, {{"stopped_ns", summary->stopped.count()}}, common);
}

int runDetach(pid_t pid, const Common& common) {
    if (const core::Status done = profiler::detach(pid); !done) return fail(done.error());
    if (common.json)
        answerWith({{"pid", pid}});
    else
        std::cerr << "highwater: process " << pid << " is left alone\n";
    return 0;
}

int runList(bool all, const Common& common) {
    const auto agent = profiler::findAgent("");
    if (!agent) return fail(agent.error());
    const auto found = profiler::listCandidates(*agent, all);
    if (common.json) {
        Json list = Json::array();
        for (const auto& each : found)
            list.push_back({{"pid", each.pid},
                            {"command", each.command},
                            {"framework", each.framework},
                            {"attachable", each.attachable},
                            {"why", each.why},
                            {"folder", each.folder},
                            {"resident_bytes", each.residentBytes},
                            {"seconds", each.seconds}});
        answerWith({{"processes", list}});
        return 0;
    }
    if (found.empty()) std::cout << "no process has PyTorch loaded\n";
    for (const auto& each : found)
        std::cout << each.pid << "  " << (each.attachable ? "attachable" : each.why) << "  "
                  << core::humanBytes(core::Bytes(each.residentBytes)) << "  "
                  << core::humanSeconds(each.seconds) << "  " << each.folder << "  " << each.command
                  << '\n';
    return 0;
}

}  // namespace

void addAttach(CLI::App& app, Common& common) {
    auto* command = addCommand(app, common, "attach",
                               "Record whole steps of a training process that runs already");
    auto options = std::make_shared<profiler::AttachOptions>();
    auto duration = std::make_shared<double>(0);
    auto patience = std::make_shared<double>(60);
    auto pids = std::make_shared<std::vector<pid_t>>();
    command
        ->add_option("PID", *pids,
                     "The process, or all ranks of a training into one session; see 'highwater ps'")
        ->required();
    auto* steps = addCaptureOptions(*command, *options);
    auto* seconds = command
                        ->add_option("--duration", *duration,
                                     "Seconds to record; without --steps, all steps in them")
                        ->check(positive(kMostSeconds));
    command
        ->add_option("--patience", *patience,
                     "Seconds to wait for a safe point in the process (default: 60)")
        ->check(positive(kMostSeconds));
    command->callback([=, &common] {
        options->pid = pids->front();
        options->others.assign(pids->begin() + 1, pids->end());
        options->patience = std::chrono::duration<double>(*patience);
        if (seconds->count() > 0) options->duration = std::chrono::duration<double>(*duration);
        options->endless = options->duration.has_value() && steps->count() == 0;
        common.exitCode = runAttach(*options, common);
    });
}

void addDetach(CLI::App& app, Common& common) {
    auto* command = addCommand(app, common, "detach", "End the recording of a process");
    auto pid = std::make_shared<pid_t>(0);
    command->add_option("PID", *pid, "The process")->required();
    command->callback([=, &common] { common.exitCode = runDetach(*pid, common); });
}

void addList(CLI::App& app, Common& common) {
    auto* command = addCommand(app, common, "ps", "List training processes");
    auto all = std::make_shared<bool>(false);
    command->add_flag("--all", *all, "Python processes without PyTorch, too");
    command->callback([=, &common] { common.exitCode = runList(*all, common); });
}

}  // namespace hw::app
