// SPDX-License-Identifier: GPL-3.0-or-later
#include <filesystem>
#include <iostream>

#include "app/cli.h"
#include "core/import/import.h"

namespace hw::app {
namespace {

struct Arguments {
    std::string file, output, format = "auto";
};

int run(const Arguments& arguments, const Common& common) {
    std::string output = arguments.output;
    if (output.empty()) {
        std::filesystem::path name = std::filesystem::path(arguments.file).filename();
        if (name.extension() == ".gz") name = name.stem();
        output = name.replace_extension(".hws").string();
    }
    // The input is looked at before the output is made: a bad input leaves nothing behind.
    core::Session trial = core::Session::inMemory();
    if (const auto tried = core::importFile(arguments.file, arguments.format, trial); !tried)
        return fail(tried.error());
    auto session = core::Session::create(output);
    if (!session) return fail(session.error());
    const auto summary = core::importFile(arguments.file, arguments.format, *session);
    if (!summary) return fail(summary.error());
    const core::SessionCounts& counts = summary->counts;
    if (common.json) {
        printJson({{"session", output},
                   {"format", summary->format},
                   {"ops", counts.ops},
                   {"storages", counts.storages},
                   {"events", counts.events}});
    } else {
        std::cout << output << ": " << counts.ops << " ops, " << counts.storages << " storages, "
                  << counts.events << " memory events (" << summary->format << ")\n";
    }
    return 0;
}

}  // namespace

void addImport(CLI::App& app, Common& common) {
    auto* command = addCommand(app, common, "import", "Read a foreign trace into a session");
    auto arguments = std::make_shared<Arguments>();
    command->add_option("FILE", arguments->file, "The trace, plain or gzip")->required();
    command->add_option("-o,--output", arguments->output,
                        "The session to write (default: FILE.hws here)");
    command->add_option("--format", arguments->format, "auto or simrd");
    command->callback([arguments, &common] { common.exitCode = run(*arguments, common); });
}

}  // namespace hw::app
