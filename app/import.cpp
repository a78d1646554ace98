// SPDX-License-Identifier: GPL-3.0-or-later
#include <filesystem>
#include <iostream>

#include "app/cli.h"
#include "core/import/import.h"

namespace hw::app {
namespace {

struct ImportArguments {
    std::string file, output, format = "auto", join;
};

core::Result<core::ImportSummary> importTo(const std::string& output,
                                           const ImportArguments& arguments) {
    core::ImportSummary summary;
    HW_TRY(core::writeSession(output, [&](core::SessionWriter& session) -> core::Status {
        auto made = core::importFile(arguments.file, arguments.format, session, arguments.join);
        if (!made) return made.error();
        summary = *std::move(made);
        return {};
    }));
    return summary;
}

void printSummary(const std::string& output, const core::ImportSummary& summary) {
    const core::SessionCounts& counts = summary.counts;
    std::cout << output << ": " << counts.ops << " ops, " << counts.storages << " storages, "
              << counts.events << " memory events (" << summary.format << ")\n";
    if (summary.join)
        std::cout << "  joined by record function id: " << summary.join->matched << " of "
                  << summary.join->ops << " ops have a time\n";
}

int run(const ImportArguments& arguments, const Common& common) {
    std::string output = arguments.output;
    if (output.empty()) {
        std::filesystem::path name = std::filesystem::path(arguments.file).filename();
        if (name.extension() == ".gz") name = name.stem();
        output = name.replace_extension(".hws").string();
    }
    const auto summary = importTo(output, arguments);
    if (!summary) return fail(summary.error());
    if (!common.json) {
        printSummary(output, *summary);
        return 0;
    }
    const core::SessionCounts& counts = summary->counts;
    Json json{{"session", output},
              {"format", summary->format},
              {"ops", counts.ops},
              {"storages", counts.storages},
              {"events", counts.events}};
    if (summary->join)
        json["join"] = {{"matched", summary->join->matched}, {"ops", summary->join->ops}};
    answerWith(json);
    return 0;
}

}  // namespace

void addImport(CLI::App& app, Common& common) {
    auto* command = addCommand(app, common, "import", "Read a foreign trace into a session");
    auto arguments = std::make_shared<ImportArguments>();
    command->add_option("FILE", arguments->file, "The trace, plain or gzip")->required();
    command->add_option("-o,--output", arguments->output,
                        "The session to write (default: FILE.hws here)");
    command->add_option("--format", arguments->format, "auto (default), " + core::importFormats());
    command->add_option("--join", arguments->join,
                        "The profiler's trace that gives an execution trace its times");
    command->callback([arguments, &common] { common.exitCode = run(*arguments, common); });
}

}  // namespace hw::app
