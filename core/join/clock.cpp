// SPDX-License-Identifier: MIT
#include "core/join/clock.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

#include "core/graph/unseen_ops.h"

namespace hw::core {
namespace {

using Moments = std::vector<CollectiveMoment>;

/// Of one step, whose spans come by seq.
void addMoments(const std::vector<OpSpanRow>& spans, std::int64_t step, Moments& moments) {
    std::int64_t order = 0, came = 0;
    std::optional<std::int64_t> begun;  // of c10d's, since the optimizer last ran
    for (const OpSpanRow& span : spans) {
        if (waitsForCollective(span.name))
            moments.push_back({step, order++, came, span.beginNs + span.durationNs});
        else if (isCollective(span.name)) {
            came = span.beginNs;
            if (!beginsWith(span.name, "_c10d_functional")) begun = span.beginNs;
        } else if (span.phase == Phase::Optimizer && begun)
            moments.push_back({step, order++, *std::exchange(begun, {}), span.beginNs});
    }
}

std::int64_t median(std::vector<std::int64_t>& values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

using Pairs = std::vector<std::pair<const CollectiveMoment*, const CollectiveMoment*>>;

/// The same moments of two ranks. Steps that do not have the same number of them are passed over.
void addPairs(const Moments& a, const Moments& b, Pairs& pairs) {
    std::map<std::int64_t, std::vector<const CollectiveMoment*>> ofA, ofB;
    for (const CollectiveMoment& moment : a) ofA[moment.step].push_back(&moment);
    for (const CollectiveMoment& moment : b) ofB[moment.step].push_back(&moment);
    for (const auto& [step, moments] : ofA) {
        const auto other = ofB.find(step);
        if (other == ofB.end() || other->second.size() != moments.size()) continue;
        for (std::size_t i = 0; i < moments.size(); ++i)
            pairs.emplace_back(moments[i], other->second[i]);
    }
}

}  // namespace

Result<std::vector<Moments>> collectiveMoments(const Session& session) {
    const auto processes = session.processes();
    if (!processes) return processes.error();
    const auto steps = session.steps();
    if (!steps) return steps.error();
    std::vector<Moments> all;
    for (const ProcessRow& process : *processes) {
        Moments& moments = all.emplace_back();
        std::int64_t index = 0;
        for (const StepRow& step : *steps) {
            if (step.process != process.id) continue;
            const auto spans = session.opSpans(step.id);
            if (!spans) return spans.error();
            addMoments(*spans, index++, moments);
        }
    }
    return all;
}

ClockOffset alignClock(const std::vector<Moments>& reference, const std::vector<Moments>& other) {
    Pairs pairs;
    for (const Moments& a : reference)
        for (const Moments& b : other) addPairs(a, b, pairs);
    if (pairs.empty()) return {};
    std::vector<std::int64_t> distances;
    for (const auto& [a, b] : pairs) distances.push_back(a->passedNs - b->passedNs);
    ClockOffset clock;
    clock.moments = static_cast<std::int64_t>(pairs.size());
    clock.offsetNs = median(distances);
    std::int64_t tooEarly = 0;
    for (const auto& [a, b] : pairs) {
        tooEarly = std::max(tooEarly, b->cameNs + clock.offsetNs - a->passedNs);
        tooEarly = std::max(tooEarly, a->cameNs - (b->passedNs + clock.offsetNs));
    }
    for (std::int64_t& distance : distances) distance = std::abs(distance - clock.offsetNs);
    clock.errorNs = std::max(median(distances), tooEarly);
    return clock;
}

}  // namespace hw::core
