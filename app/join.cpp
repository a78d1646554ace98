// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/join/join.h"

#include <cstdio>

#include "app/cli.h"

namespace hw::app {
namespace {

struct JoinArguments {
    std::vector<std::string> files;
    std::string output;
};

core::Result<core::JoinSummary> joinTo(const JoinArguments& arguments) {
    core::JoinSummary summary;
    HW_TRY(core::writeSession(arguments.output, [&](core::SessionWriter& to) -> core::Status {
        auto joined = core::joinSessions(arguments.files, to);
        if (!joined) return joined.error();
        summary = *std::move(joined);
        return {};
    }));
    return summary;
}

Json sessionJson(const core::JoinedSession& session) {
    const core::ClockOffset& clock = session.clock;
    return {{"file", session.path},
            {"hosts", session.hosts},
            {"ranks", session.ranks},
            {"clock_offset_ns", clock.offsetNs},
            {"clock_error_ns", clock.errorNs},
            {"collectives", clock.moments}};
}

void print(const JoinArguments& arguments, const core::JoinSummary& summary) {
    std::printf("%s: %lld ranks, %lld steps, %lld layers\n", arguments.output.c_str(),
                static_cast<long long>(summary.worldSize), static_cast<long long>(summary.steps),
                static_cast<long long>(summary.layers));
    bool first = true;
    for (const core::JoinedSession& session : summary.sessions) {
        std::string ranks, hosts;
        for (const int rank : session.ranks) ranks += " " + std::to_string(rank);
        for (const std::string& host : session.hosts) hosts += " " + host;
        std::printf("  %s: on%s, ranks%s", session.path.c_str(), hosts.c_str(), ranks.c_str());
        if (!std::exchange(first, false)) {
            const core::ClockOffset& clock = session.clock;
            if (clock.moments == 0)
                std::printf("; its clock is not known: no collective in common");
            else
                std::printf("; its clock moved by %.6f s, within %s (%lld collectives)",
                            static_cast<double>(clock.offsetNs) * 1e-9,
                            core::humanTime(core::Nanoseconds(clock.errorNs)).c_str(),
                            static_cast<long long>(clock.moments));
        }
        std::printf("\n");
    }
}

int run(const JoinArguments& arguments, const Common& common) {
    const auto summary = joinTo(arguments);
    if (!summary) return fail(summary.error());
    if (!common.json) {
        print(arguments, *summary);
        return 0;
    }
    Json sessions = Json::array();
    for (const auto& session : summary->sessions) sessions.push_back(sessionJson(session));
    answerWith({{"session", arguments.output},
                {"ranks", summary->worldSize},
                {"steps", summary->steps},
                {"layers", summary->layers},
                {"run", summary->run},
                {"sessions", sessions}});
    return 0;
}

}  // namespace

void addJoin(CLI::App& app, Common& common) {
    auto* command = addCommand(app, common, "join",
                               "Make one session of those that were recorded on several machines "
                               "of one training");
    auto arguments = std::make_shared<JoinArguments>();
    command
        ->add_option("SESSIONS", arguments->files,
                     "One of each machine: together they hold every rank once")
        ->required();
    command->add_option("-o,--output", arguments->output, "The session to write")->required();
    command->callback([arguments, &common] { common.exitCode = run(*arguments, common); });
}

}  // namespace hw::app
