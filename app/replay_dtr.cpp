// SPDX-License-Identifier: GPL-3.0-or-later
// What the simulation of DTR evicts, given the log of a program that trained within a budget
// (HIGHWATER_DTR_LOG). Not for people.
#include <fstream>
#include <iostream>

#include "app/cli.h"
#include "planners/dtr/live_replay.h"

namespace hw::app {
namespace {

using namespace hw::core;

int run(const std::string& path) {
    std::ifstream file(path);
    const auto log = planners::readLiveLog(file);
    if (!log) return fail(log.error());
    Json stretches = Json::array();
    for (const planners::LiveStretch& stretch : log->stretches) {
        const planners::Replayed replayed = planners::replay(stretch, log->heuristic);
        stretches.push_back({{"ops", stretch.graph.ops.size()},
                             {"live", stretch.evicted},
                             {"replayed", replayed.evicted},
                             {"stopped", replayed.stopped}});
    }
    std::cout << stretches.dump() << '\n';
    return 0;
}

}  // namespace

void addReplayDtr(CLI::App& app, Common& common) {
    auto* command = app.add_subcommand("replay-dtr")->group("");
    auto path = std::make_shared<std::string>();
    command->add_option("LOG", *path)->required();
    command->callback([path, &common] { common.exitCode = run(*path); });
}

}  // namespace hw::app
