// SPDX-License-Identifier: MIT
#include "core/join/join.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "core/session/append_session.h"

namespace hw::core {
namespace {

constexpr std::int64_t kMostNamed = 8;  // of missing ranks

struct Part {
    Session session;
    std::vector<ProcessRow> processes;
    std::vector<StepRow> steps;
    ClockOffset clock;

    int lowestRank() const {
        int lowest = processes.front().rank;
        for (const ProcessRow& process : processes) lowest = std::min(lowest, process.rank);
        return lowest;
    }
};

Result<Part> openPart(const std::string& path) {
    auto session = Session::open(path);
    if (!session) return session.error();
    const auto source = session->meta("source");
    if (!source) return source.error();
    auto processes = session->processes();
    if (!processes) return processes.error();
    auto steps = session->steps();
    if (!steps) return steps.error();
    if (!source->empty() || processes->empty() || steps->empty())
        return badInput("'" + path + "' holds no recorded step of a training",
                        "join what 'highwater record' wrote on each machine");
    return Part{std::move(*session), std::move(*processes), std::move(*steps), {}};
}

Result<std::vector<Part>> openParts(const std::vector<std::string>& paths) {
    if (paths.size() < 2)
        return Error{ErrorCode::Usage, "a single session is nothing to join",
                     "write: highwater join A.hws B.hws -o run.hws"};
    std::vector<Part> parts;
    for (const std::string& path : paths) {
        auto part = openPart(path);
        if (!part) return part.error();
        parts.push_back(std::move(*part));
    }
    std::stable_sort(parts.begin(), parts.end(),
                     [](const Part& a, const Part& b) { return a.lowestRank() < b.lowestRank(); });
    return parts;
}

std::string runOf(const ProcessRow& process) {
    const std::string run = process.run.empty() ? "no name" : process.run;
    return process.worldSize ? run + " of " + std::to_string(*process.worldSize) + " ranks" : run;
}

std::string quoted(const Part& part) {
    return "'" + part.session.path() + "'";
}

Status requireOneRun(const std::vector<Part>& parts) {
    const ProcessRow& first = parts.front().processes.front();
    for (const Part& part : parts)
        for (const ProcessRow& process : part.processes) {
            if (std::tie(process.framework, process.frameworkVersion) !=
                std::tie(first.framework, first.frameworkVersion))
                return badInput(quoted(parts.front()) + " was recorded with " + first.framework +
                                    " " + first.frameworkVersion + ", " + quoted(part) + " with " +
                                    process.framework + " " + process.frameworkVersion,
                                "the ranks of one run use one version on all machines: record "
                                "again with it");
            if (process.run != first.run || process.worldSize != first.worldSize)
                return badInput(quoted(part) + " is of another run than " + quoted(parts.front()) +
                                    ": " + runOf(process) + ", not " + runOf(first),
                                "join the sessions that were recorded at the same time, one of "
                                "each machine");
        }
    return {};
}

Status requireEachRankOnce(const std::vector<Part>& parts) {
    std::map<int, const Part*> ranks;
    for (const Part& part : parts)
        for (const ProcessRow& process : part.processes) {
            const auto [at, isNew] = ranks.try_emplace(process.rank, &part);
            if (isNew) continue;
            return badInput("rank " + std::to_string(process.rank) + " is in " +
                                quoted(*at->second) + " and in " + quoted(part),
                            "give one session of each machine");
        }
    const auto world =
        parts.front().processes.front().worldSize.value_or(ranks.rbegin()->first + 1);
    std::string missing;
    std::int64_t lacking = 0;
    for (int rank = 0; rank < world; ++rank)
        if (ranks.count(rank) == 0 && ++lacking <= kMostNamed)
            missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
    if (lacking > kMostNamed) missing += ", …";
    if (lacking == 0) return {};
    return badInput((lacking == 1 ? "rank " : "ranks ") + missing + " of " + std::to_string(world) +
                        (lacking == 1 ? " is" : " are") + " in none of the sessions",
                    "join the sessions of all machines, each with at least one complete step");
}

void moveClock(std::vector<RankMoments>& ranks, std::int64_t offsetNs) {
    for (RankMoments& rank : ranks) {
        for (CollectiveMoment& each : rank.passed)
            each.cameNs += offsetNs, each.passedNs += offsetNs;
        for (auto* const messages : {&rank.sent, &rank.received})
            for (MessageMoment& each : *messages) each.ns += offsetNs;
    }
}

/// To that of the first one, directly or over others: a stage of a pipeline knows its neighbours.
Status alignClocks(std::vector<Part>& parts) {
    std::vector<std::vector<RankMoments>> moments;
    for (const Part& part : parts) {
        auto ofPart = rankMoments(part.session);
        if (!ofPart) return ofPart.error();
        moments.push_back(std::move(*ofPart));
    }
    std::vector<std::size_t> aligned{0};
    for (std::size_t by = 0; by < aligned.size(); ++by)
        for (std::size_t i = 1; i < parts.size(); ++i) {
            if (std::find(aligned.begin(), aligned.end(), i) != aligned.end()) continue;
            ClockOffset clock = alignClock(moments[aligned[by]], moments[i]);
            if (clock.moments == 0) continue;
            clock.errorNs += parts[aligned[by]].clock.errorNs;
            moveClock(moments[i], clock.offsetNs);
            parts[i].clock = clock;
            aligned.push_back(i);
        }
    return {};
}

/// What the steps of each part become: they count in the order in which they ended.
std::vector<std::map<std::int64_t, std::int64_t>> numberSteps(const std::vector<Part>& parts) {
    std::vector<std::tuple<std::int64_t, std::size_t, std::int64_t>> ends;
    for (std::size_t i = 0; i < parts.size(); ++i)
        for (const StepRow& step : parts[i].steps)
            ends.emplace_back(step.endNs + parts[i].clock.offsetNs, i, step.id);
    std::sort(ends.begin(), ends.end());
    std::vector<std::map<std::int64_t, std::int64_t>> numbers(parts.size());
    std::int64_t next = 0;
    for (const auto& [end, part, step] : ends) numbers[part][step] = next++;
    return numbers;
}

JoinedSession summaryOf(const Part& part) {
    JoinedSession summary{part.session.path(), {}, {}, part.clock};
    for (const ProcessRow& process : part.processes) {
        summary.ranks.push_back(process.rank);
        if (std::find(summary.hosts.begin(), summary.hosts.end(), process.host) ==
            summary.hosts.end())
            summary.hosts.push_back(process.host);
    }
    std::sort(summary.ranks.begin(), summary.ranks.end());
    return summary;
}

Status write(const std::vector<Part>& parts, SessionWriter& to) {
    const auto numbers = numberSteps(parts);
    CommonRows common;
    std::int64_t processes = 0;
    std::string files;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const Part& part = parts[i];
        HW_TRY(appendSession(part.session,
                             {processes, numbers[i], part.clock.offsetNs, part.clock.errorNs},
                             common, to));
        processes += static_cast<std::int64_t>(part.processes.size());
        files += (files.empty() ? "" : "\n") + part.session.path();
        if (i > 0 && part.clock.moments == 0)
            HW_TRY(to.insert(GapRow{{},
                                    {},
                                    {},
                                    "the clock of " + part.session.path(),
                                    "no collective that its ranks passed together with those of " +
                                        parts.front().session.path() +
                                        ", and no messages both ways, were recorded: its times "
                                        "are as they were"}));
    }
    return to.setMeta(kJoinedFrom, files);
}

}  // namespace

Result<JoinSummary> joinSessions(const std::vector<std::string>& paths, SessionWriter& to) {
    auto parts = openParts(paths);
    if (!parts) return parts.error();
    HW_TRY(requireOneRun(*parts));
    HW_TRY(requireEachRankOnce(*parts));
    HW_TRY(alignClocks(*parts));
    HW_TRY(to.begin());
    HW_TRY(write(*parts, to));
    HW_TRY(to.commit());
    const auto counts = to.counts();
    if (!counts) return counts.error();
    JoinSummary summary;
    summary.steps = counts->steps, summary.layers = counts->layers;
    summary.run = parts->front().processes.front().run;
    for (const Part& part : *parts) {
        summary.sessions.push_back(summaryOf(part));
        summary.worldSize += static_cast<std::int64_t>(part.processes.size());
    }
    return summary;
}

}  // namespace hw::core
