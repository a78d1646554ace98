// SPDX-License-Identifier: MIT
#include "core/join/clock.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "core/graph/unseen_ops.h"
#include "core/session/collectives.h"
#include "core/session/exchanges.h"

namespace hw::core {
namespace {

/// Of one step, whose spans come by seq. Whether there are messages, too.
bool addPassed(const std::vector<OpSpanRow>& spans, std::int64_t step,
               std::vector<CollectiveMoment>& moments) {
    std::int64_t order = 0, came = 0;
    std::optional<std::int64_t> begun;  // of c10d's, since the optimizer last ran
    bool messages = false;
    for (const OpSpanRow& span : spans) {
        if (waitsForCollective(span.name)) {
            moments.push_back({step, order++, came, span.beginNs + span.durationNs});
        } else if (isCollective(span.name) && isMessage(span.name)) {
            messages = true;
        } else if (isCollective(span.name)) {
            came = span.beginNs;
            if (!beginsWith(span.name, "_c10d_functional")) begun = span.beginNs;
        } else if (span.phase == Phase::Optimizer && begun) {
            moments.push_back({step, order++, *std::exchange(begun, {}), span.beginNs});
        }
    }
    return messages;
}

Status addMessages(const Session& session, const StepRow& row, std::int64_t step,
                   RankMoments& moments) {
    const auto exchanges = exchangesOf(session, row);
    if (!exchanges) return exchanges.error();
    std::map<std::tuple<Exchange::Kind, int, std::int64_t>, std::int64_t> count;
    for (const Exchange& exchange : *exchanges) {
        if (exchange.kind == Exchange::Kind::Meeting) continue;
        const bool sent = exchange.kind == Exchange::Kind::Send;
        const std::int64_t order = count[{exchange.kind, exchange.peer, exchange.tag}]++;
        if (!sent && !exchange.use) continue;
        (sent ? moments.sent : moments.received)
            .push_back({exchange.peer, exchange.tag, step, order,
                        sent ? exchange.beginNs : exchange.useBeginNs});
    }
    return {};
}

std::int64_t median(std::vector<std::int64_t>& values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

using Pairs = std::vector<std::pair<const CollectiveMoment*, const CollectiveMoment*>>;

/// The same moments of two ranks. Steps that do not have the same number of them are passed over.
void addPairs(const RankMoments& a, const RankMoments& b, Pairs& pairs) {
    std::map<std::int64_t, std::vector<const CollectiveMoment*>> ofA, ofB;
    for (const CollectiveMoment& moment : a.passed) ofA[moment.step].push_back(&moment);
    for (const CollectiveMoment& moment : b.passed) ofB[moment.step].push_back(&moment);
    for (const auto& [step, moments] : ofA) {
        const auto other = ofB.find(step);
        if (other == ofB.end() || other->second.size() != moments.size()) continue;
        for (std::size_t i = 0; i < moments.size(); ++i)
            pairs.emplace_back(moments[i], other->second[i]);
    }
}

/// The least time from sending to working on what ranks of `from` sent those of `to`, by clocks
/// that need not be the same; and how many messages there are.
struct Fastest {
    std::int64_t ns = std::numeric_limits<std::int64_t>::max();
    std::int64_t messages = 0;
};
Fastest fastest(const std::vector<RankMoments>& from, const std::vector<RankMoments>& to) {
    std::map<std::tuple<int, int, std::int64_t, std::int64_t, std::int64_t>, std::int64_t> sent;
    for (const RankMoments& rank : from)
        for (const MessageMoment& each : rank.sent)
            sent[{rank.rank, each.peer, each.tag, each.step, each.order}] = each.ns;
    Fastest result;
    for (const RankMoments& rank : to)
        for (const MessageMoment& each : rank.received) {
            const auto at = sent.find({each.peer, rank.rank, each.tag, each.step, each.order});
            if (at == sent.end()) continue;
            result.ns = std::min(result.ns, each.ns - at->second);
            ++result.messages;
        }
    return result;
}

/// Nothing is worked on before it has been sent, which bounds the offset from both sides.
ClockOffset alignByMessages(const std::vector<RankMoments>& reference,
                            const std::vector<RankMoments>& other) {
    const Fastest there = fastest(reference, other), back = fastest(other, reference);
    if (there.messages == 0 || back.messages == 0) return {};
    ClockOffset clock;
    clock.moments = there.messages + back.messages;
    clock.offsetNs = (back.ns - there.ns) / 2;
    clock.errorNs = std::abs(back.ns + there.ns) / 2;
    return clock;
}

}  // namespace

Result<std::vector<RankMoments>> rankMoments(const Session& session) {
    const auto processes = session.processes();
    if (!processes) return processes.error();
    const auto steps = session.steps();
    if (!steps) return steps.error();
    std::vector<RankMoments> all;
    for (const ProcessRow& process : *processes) {
        RankMoments& moments = all.emplace_back();
        moments.rank = process.rank;
        std::int64_t index = 0;
        for (const StepRow& step : *steps) {
            if (step.process != process.id) continue;
            const auto spans = session.opSpans(step.id);
            if (!spans) return spans.error();
            if (addPassed(*spans, index, moments.passed))
                HW_TRY(addMessages(session, step, index, moments));
            ++index;
        }
    }
    return all;
}

ClockOffset alignClock(const std::vector<RankMoments>& reference,
                       const std::vector<RankMoments>& other) {
    Pairs pairs;
    for (const RankMoments& a : reference)
        for (const RankMoments& b : other) addPairs(a, b, pairs);
    if (pairs.empty()) return alignByMessages(reference, other);
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
