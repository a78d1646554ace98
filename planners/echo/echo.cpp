// SPDX-License-Identifier: MIT
#include "planners/echo/echo.h"

#include <algorithm>

#include "core/memory/rebuild.h"
#include "planners/echo/analysis.h"
#include "planners/echo/codecs.h"
#include "planners/schedule/forward_pass.h"

namespace hw::planners {
namespace {

using namespace hw::core;

struct Judged {
    Schedule schedule;
    Evaluation figures;

    bool betterThan(const Judged& other) const {
        if (!figures.valid) return false;
        if (figures.peak != other.figures.peak) return figures.peak < other.figures.peak;
        return figures.time < other.figures.time;
    }
};

Judged judge(const TrainingGraph& graph, Schedule schedule) {
    Evaluation figures = evaluate(graph, schedule);
    return {std::move(schedule), std::move(figures)};
}

// Sites go in together where that does not raise the peak, one by one otherwise. They take time:
// all stay out where the peak is no lower with them.
void addCodecs(const TrainingGraph& graph, const std::vector<CodecSite>& sites, Judged& best) {
    constexpr std::size_t kTries = 24;
    auto consider = [&](const std::vector<CodecSite>& chosen) {
        Judged encoded = judge(graph, withCodecs(graph, best.schedule, chosen));
        if (!encoded.figures.valid || encoded.figures.peak > best.figures.peak) return false;
        best = std::move(encoded);
        return true;
    };
    if (sites.empty()) return;
    const Judged plain = best;
    if (!consider(sites)) {
        std::vector<CodecSite> largest = sites;
        std::stable_sort(
            largest.begin(), largest.end(), [&](const CodecSite& a, const CodecSite& b) {
                return graph.storages[a.storage].bytes > graph.storages[b.storage].bytes;
            });
        largest.resize(std::min(largest.size(), kTries));
        for (const CodecSite& site : largest) consider({site});
    }
    if (best.figures.peak == plain.figures.peak) best = plain;
}

// Algorithm 1 with the storages in `keep` left alone, and the codecs after it.
Judged expandAndTrim(const TrainingGraph& graph, const RebuildInfo& info,
                     const ForwardPass& forward, std::vector<bool> keep,
                     const std::vector<CodecSite>& sites, const Progress& progress) {
    constexpr int kLimits = 10;  // bounds on one recomputation: everything, a half, a quarter, …
    const EchoAnalysis analysis(graph, info, forward, std::move(keep));
    RecomputeSet all = analysis.expand();
    analysis.trim(all);

    Judged best = judge(graph, baselineSchedule(graph));
    auto consider = [&](const RecomputeSet& set) {
        Judged made = judge(graph, forward.recompute(set));
        if (made.betterThan(best)) best = std::move(made);
    };
    consider(RecomputeSet(graph.storages.size(), false));
    RecomputeSet previous;
    for (int i = 0; i < kLimits && !progress.cancelled(); ++i) {
        progress.report(static_cast<double>(i) / kLimits, "splitting recomputations");
        RecomputeSet set = all;
        analysis.split(set, Bytes(analysis.bytesOf(all).count() >> i));
        if (set == previous) continue;
        consider(set);
        previous = std::move(set);
    }
    addCodecs(graph, sites, best);
    return best;
}

}  // namespace

PlannerInfo Echo::info() {
    return {.name = "echo",
            .description = "Echo (ISCA 2020), recomputation behind cheap ops and one-bit encodings",
            .options = {"encodings=on|off"},
            .colour = 3,
            .budgetFree = true,
            .preselected = true,
            .make = [] { return std::make_unique<Echo>(); }};
}

Proposal Echo::plan(const TrainingGraph& graph, const PlanRequest& request,
                    const Progress& progress) const {
    const auto encodings = request.options.find("encodings");
    const bool encode = graph.framework != "simrd" &&
                        (encodings == request.options.end() || encodings->second != "off");
    const std::vector<CodecSite> sites = encode ? codecSites(graph) : std::vector<CodecSite>{};
    const RebuildInfo info = rebuildInfo(graph);
    const ForwardPass forward(graph, info);

    // Masks may stay, encoded, or be drawn again: which is less depends on what else is recomputed.
    std::vector<bool> masks(graph.storages.size(), false);
    for (const CodecSite& site : sites)
        if (site.codec == kMaskCodec) masks[site.storage] = true;
    const std::vector<bool> none(graph.storages.size(), false);
    Judged best = expandAndTrim(graph, info, forward, masks, sites, progress);
    if (masks != none && !progress.cancelled())
        if (Judged other = expandAndTrim(graph, info, forward, none, sites, progress);
            other.betterThan(best))
            best = std::move(other);
    if (progress.cancelled()) return {PlanStatus::Cancelled, "cancelled", {}, {}, {}};
    Proposal proposal;
    proposal.status = PlanStatus::Ok;
    proposal.schedule = std::move(best.schedule);
    return proposal;
}

}  // namespace hw::planners
