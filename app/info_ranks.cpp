// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/info_ranks.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "core/ranks/rank_steps.h"
#include "core/session/collectives.h"

namespace hw::app {
namespace {

using namespace hw::core;

/// One each process: its steps and their highest peak; more than one where ranks were recorded.
struct Rank {
    ProcessRow process;
    std::vector<std::int64_t> steps;
    Bytes peak;  // as its allocator said; 0: not recorded
};

Json orNull(const std::optional<std::int64_t>& value) {
    return value ? Json(*value) : Json(nullptr);
}

std::vector<Rank> ranksOf(const Session& session) {
    std::vector<Rank> ranks;
    const auto processes = session.processes();
    const auto steps = session.steps();
    if (!processes || !steps) return ranks;
    for (const ProcessRow& process : *processes) {
        Rank rank{process, {}, Bytes(0)};
        for (const StepRow& step : *steps) {
            if (step.process != process.id) continue;
            rank.steps.push_back(step.id);
            rank.peak = std::max(rank.peak, Bytes(step.allocatorPeakBytes.value_or(0)));
        }
        ranks.push_back(std::move(rank));
    }
    std::stable_sort(ranks.begin(), ranks.end(),
                     [](const Rank& a, const Rank& b) { return a.process.rank < b.process.rank; });
    return ranks;
}

std::vector<CollectiveUse> collectivesAt(const Session& session, std::int64_t step) {
    const auto steps = session.steps();
    if (!steps) return {};
    const auto row = std::find_if(steps->begin(), steps->end(),
                                  [&](const StepRow& each) { return each.id == step; });
    if (row == steps->end()) return {};
    auto uses = collectivesOf(session, *row);
    return uses ? *std::move(uses) : std::vector<CollectiveUse>();
}

}  // namespace

Json ranksJson(const Session& session) {
    Json list = Json::array();
    for (const Rank& rank : ranksOf(session))
        list.push_back({{"rank", rank.process.rank},
                        {"pid", rank.process.pid},
                        {"host", rank.process.host},
                        {"steps", rank.steps},
                        {"peak_bytes", rank.peak.count()},
                        {"world_size", orNull(rank.process.worldSize)},
                        {"clock_offset_ns", orNull(rank.process.clockOffsetNs)},
                        {"clock_error_ns", orNull(rank.process.clockErrorNs)}});
    return list;
}
void printRanks(const Session& session) {
    const std::vector<Rank> ranks = ranksOf(session);
    if (ranks.size() < 2) return;
    for (const Rank& rank : ranks) {
        const ProcessRow& process = rank.process;
        std::printf("  rank %d: process %lld", process.rank, static_cast<long long>(process.pid));
        if (process.clockOffsetNs) std::printf(" on %s", process.host.c_str());
        if (rank.steps.empty())
            std::printf(", no steps");
        else
            std::printf(", %zu steps (--step %lld to %lld)", rank.steps.size(),
                        static_cast<long long>(rank.steps.front()),
                        static_cast<long long>(rank.steps.back()));
        std::printf(", peak %s", humanBytes(rank.peak).c_str());
        if (process.clockErrorNs.value_or(0) > 0)
            std::printf(", clock within %s", humanTime(Nanoseconds(*process.clockErrorNs)).c_str());
        std::printf("\n");
    }
}

int printRankTimes(const Session& session, std::optional<CostSet> costs, const Common& common) {
    const auto ranks = loadRanks(session, costs);
    if (!ranks) return fail(ranks.error());
    if (ranks->empty()) return fail(session.lastStep().error());
    const StepTime time = recordedTime(*ranks);
    Json list = Json::array();
    if (!common.json)
        std::printf("%5s  %-16s %6s %12s %12s %12s\n", "rank", "host", "step", "peak", "ops take",
                    "waits");
    for (std::size_t r = 0; r < ranks->size(); ++r) {
        const LoadedRank& rank = (*ranks)[r];
        list.push_back({{"rank", rank.rank},
                        {"host", rank.host},
                        {"step", rank.graph.sessionStep},
                        {"peak_bytes", rank.baseline.peak.count()},
                        {"time_ns", rank.baseline.time.count()},
                        {"waiting_ns", time.ranks[r].waiting.count()}});
        if (!common.json)
            std::printf("%5d  %-16s %6lld %12s %12s %12s%s\n", rank.rank, rank.host.c_str(),
                        static_cast<long long>(rank.graph.sessionStep),
                        humanBytes(rank.baseline.peak).c_str(),
                        humanTime(rank.baseline.time).c_str(),
                        humanTime(time.ranks[r].waiting).c_str(),
                        r == time.decides ? "  sets the step" : "");
    }
    if (common.json)
        answerWith({{"time_ns", time.time.count()},
                    {"slowest_rank", (*ranks)[time.decides].rank},
                    {"exchanges_matched", time.matched},
                    {"ranks", list}});
    else
        std::printf("the step takes %s (op times, and waiting for each other)\n",
                    humanTime(time.time).c_str());
    return 0;
}

Json collectivesJson(const Session& session, std::int64_t step) {
    Json list = Json::array();
    for (const CollectiveUse& use : collectivesAt(session, step))
        list.push_back({{"operation", use.operation},
                        {"group", use.group.empty() ? Json(nullptr) : Json(use.group)},
                        {"count", use.count},
                        {"bytes", use.bytes.count()}});
    return list;
}

void printCollectives(const Session& session, std::int64_t step) {
    const auto uses = collectivesAt(session, step);
    if (uses.empty()) return;
    std::printf("  collectives:");
    for (const CollectiveUse& use : uses) {
        std::printf(" %lld %s", static_cast<long long>(use.count), use.operation.c_str());
        if (!use.group.empty()) std::printf(" in group %s", use.group.c_str());
        if (use.bytes > Bytes(0)) std::printf(" (%s)", humanBytes(use.bytes).c_str());
        std::printf(";");
    }
    std::printf("\n");
}

}  // namespace hw::app
