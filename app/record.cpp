// SPDX-License-Identifier: GPL-3.0-or-later
#include "profiler/attach/record.h"

#include <iostream>
#include <map>

#include "app/recording.h"

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
    const auto summary = profiler::record(options, toTerminal);
    if (!summary) return fail(summary.error());
    return tell(*summary, {{"exit_status", summary->exitStatus}}, common);
}

/// How the ops of the last step were seen: "native" or "python"; null where no step says so.
Json captureOf(const std::string& session) {
    const auto opened = core::Session::open(session);
    const auto steps = opened ? opened->steps() : opened.error();
    if (!steps || steps->empty()) return nullptr;
    const Json environment = Json::parse(steps->back().environment, nullptr, false);
    return environment.is_object() ? environment.value("capture", Json(nullptr)) : Json(nullptr);
}

}  // namespace

void toTerminal(const std::string& line) {
    // In one piece: the program that is recorded writes to the same place.
    std::cerr << "highwater: " + line + '\n';
}

void noteToTerminal(const std::string& line) {
    clearProgress();
    std::cerr << "note: " + line + '\n';
}

int tell(const profiler::RecordSummary& summary, const Json& own, const Common& common) {
    for (const std::string& note : summary.notes) std::cerr << "note: " << note << '\n';
    if (common.json) {
        Json told{{"session", summary.session},     {"steps", summary.steps},
                  {"processes", summary.processes}, {"ops", summary.ops},
                  {"dropped", summary.dropped},     {"capture", captureOf(summary.session)}};
        told.update(own);
        answerWith(told);
    } else {
        toTerminal(summary.session + ": " + std::to_string(summary.steps) + " steps, " +
                   std::to_string(summary.ops) + " ops in the last one");
    }
    return 0;
}

CLI::Option* addCaptureOptions(CLI::App& command, profiler::CaptureOptions& options) {
    command.add_option("-o,--output", options.output,
                       "The session to write (default: named after the program)");
    command.add_option("--every", options.every, "Record every N-th step (default: 1)");
    command.add_flag("--contents", options.contents,
                     "Store the contents of floating-point tensors too");
    command.add_flag("--on-oom", options.onOom,
                     "Keep only the step that runs out of memory, up to the op that does");
    command.add_flag("--gpu", options.gpu,
                     "Fail where kernels, copies and driver memory cannot be recorded (without it "
                     "they are where a GPU is in use, and missing ones become a gap)");
    const std::map<std::string, profiler::wire::Stacks> kinds{
        {"full", profiler::wire::Stacks::Full},
        {"line", profiler::wire::Stacks::Line},
        {"off", profiler::wire::Stacks::Off}};
    command
        .add_option_function<std::string>(
            "--stacks",
            [&options, kinds](const std::string& kind) { options.stacks = kinds.at(kind); },
            "Python call stacks of ops: full (default), line (the program's line alone) or off")
        ->check(CLI::IsMember({"full", "line", "off"}));
    return command.add_option("--steps", options.steps, "Steps to record (default: 3)");
}

void addRecord(CLI::App& app, Common& common) {
    auto* command =
        addCommand(app, common, "record", "Start a training script and record whole steps of it");
    auto options = std::make_shared<profiler::RecordOptions>();
    addCaptureOptions(*command, *options);
    command->add_option("--warmup", options->warmup,
                        "Steps to let pass before the first recorded one (default: 0)");
    command->add_option("PROG", options->command,
                        "The program and its arguments; write -- before it");
    command->callback([options, &common] {
        options->command = common.program;
        common.exitCode = run(*options, common);
    });
}

}  // namespace hw::app
