// SPDX-License-Identifier: GPL-3.0-or-later
#include <iostream>

#include "app/cli.h"
#include "profiler/attach/record.h"

namespace hw::app {
namespace {

int run(const profiler::RecordOptions& wanted, const Common& common) {
    if (wanted.command.empty())
        return fail({core::ErrorCode::Usage, "no program to record",
                     "write: highwater record -- python3 train.py"});
    if (wanted.steps < 1 || wanted.warmup < 0 || wanted.every < 1)
        return fail({core::ErrorCode::Usage, "--steps and --every start at 1, --warmup at 0",
                     "see 'highwater record --help'"});
    profiler::RecordOptions options = wanted;
    options.childStdoutToStderr = common.json;
    const auto summary = profiler::record(
        options, [](const std::string& line) { std::cerr << "highwater: " << line << '\n'; });
    if (!summary) return fail(summary.error());
    for (const std::string& note : summary->notes) std::cerr << "note: " << note << '\n';
    if (common.json)
        printJson({{"session", summary->session},
                   {"steps", summary->steps},
                   {"ops", summary->ops},
                   {"dropped", summary->dropped},
                   {"exit_status", summary->exitStatus}});
    else
        std::cerr << "highwater: " << summary->session << ": " << summary->steps << " steps, "
                  << summary->ops << " ops in the last one\n";
    return 0;
}

}  // namespace

void addRecord(CLI::App& app, Common& common) {
    auto* command =
        addCommand(app, common, "record", "Start a training script and record whole steps of it");
    auto options = std::make_shared<profiler::RecordOptions>();
    command->add_option("-o,--output", options->output,
                        "The session to write (default: named after the program)");
    command->add_option("--steps", options->steps, "Steps to record");
    command->add_option("--warmup", options->warmup,
                        "Steps to let pass before the first recorded one");
    command->add_option("--every", options->every, "Record every N-th step");
    command->add_flag("--contents", options->contents,
                      "Store the contents of floating-point tensors too");
    command->add_flag("--on-oom", options->onOom,
                      "Keep only the step that runs out of memory, up to the op that does");
    command->add_option("PROG", options->command, "After --: the program and its arguments");
    command->callback([options, &common] { common.exitCode = run(*options, common); });
}

}  // namespace hw::app
