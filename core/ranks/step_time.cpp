// SPDX-License-Identifier: MIT
#include "core/ranks/step_time.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "core/graph/unseen_ops.h"
#include "core/memory/evaluate.h"

namespace hw::core {
namespace {

constexpr std::size_t kNobody = static_cast<std::size_t>(-1);

/// What several ranks have to come to before any of them goes on: a message, or a meeting.
struct Rendezvous {
    std::size_t missing = 0;  // ranks that have not come yet
    Nanoseconds done;         // when the last one came
};

/// A stretch of a rank's step: first it waits, then it works, then it has come to something.
struct Stretch {
    std::vector<std::size_t> awaits;
    Nanoseconds work;
    std::size_t comesTo = kNobody;
};

/// A message, or a meeting of a group, by all that says which.
using Channel = std::tuple<std::string, int, int, std::int64_t>;

Channel channelOf(const Exchange& exchange, int rank) {
    switch (exchange.kind) {
        case Exchange::Kind::Send:
            return {"", rank, exchange.peer, exchange.tag};
        case Exchange::Kind::Receive:
            return {"", exchange.peer, rank, exchange.tag};
        case Exchange::Kind::Meeting:
            break;
    }
    return {"meeting " + exchange.group, -1, -1, 0};
}

class Simulation {
public:
    explicit Simulation(const std::vector<RankStep>& ranks) : ranks_(ranks) {
        match();
        for (std::size_t r = 0; r < ranks_.size(); ++r) stretches_.push_back(stretchesOf(r));
    }

    StepTime run() {
        std::vector<std::size_t> next(ranks_.size(), 0);
        result_.ranks.resize(ranks_.size());
        for (bool onward = true; onward;) {
            onward = false;
            for (std::size_t r = 0; r < ranks_.size(); ++r)
                while (next[r] < stretches_[r].size() && advance(r, stretches_[r][next[r]]))
                    ++next[r], onward = true;
            for (std::size_t r = 0; r < ranks_.size() && !onward; ++r) {
                if (next[r] == stretches_[r].size()) continue;
                stretches_[r][next[r]].awaits.clear();  // each waits for another: let one go
                result_.matched = false;
                onward = true;
            }
        }
        for (std::size_t r = 0; r < ranks_.size(); ++r) {
            const RankTime &rank = result_.ranks[r], &least = result_.ranks[result_.decides];
            result_.time = std::max(result_.time, rank.end);
            if (std::tuple(least.waiting, rank.end) > std::tuple(rank.waiting, least.end))
                result_.decides = r;
        }
        return std::move(result_);
    }

private:
    /// Gives each exchange its rendezvous, none to what others lack.
    void match() {
        std::map<std::pair<Channel, std::size_t>, std::vector<std::pair<std::size_t, std::size_t>>>
            met;  // rank and exchange, by channel and the how manieth there
        for (std::size_t r = 0; r < ranks_.size(); ++r) {
            std::map<std::pair<Channel, Exchange::Kind>, std::size_t> count;
            const auto& exchanges = *ranks_[r].exchanges;
            for (std::size_t e = 0; e < exchanges.size(); ++e) {
                const Channel channel = channelOf(exchanges[e], ranks_[r].rank);
                met[{channel, count[{channel, exchanges[e].kind}]++}].emplace_back(r, e);
            }
        }
        rendezvousOf_.resize(ranks_.size());
        for (std::size_t r = 0; r < ranks_.size(); ++r)
            rendezvousOf_[r].assign(ranks_[r].exchanges->size(), kNobody);
        for (const auto& [which, those] : met) {
            if (those.size() < 2) {
                result_.matched = result_.matched && ranks_.size() < 2;
                continue;
            }
            for (const auto& [r, e] : those) rendezvousOf_[r][e] = rendezvous_.size();
            // A message is there when it has been sent.
            const auto receives = std::count_if(those.begin(), those.end(), [&](const auto& each) {
                const Exchange& exchange = (*ranks_[each.first].exchanges)[each.second];
                return exchange.kind == Exchange::Kind::Receive;
            });
            rendezvous_.push_back({those.size() - static_cast<std::size_t>(receives), {}});
        }
    }

    /// By op: what it waits for, and what it comes to.
    struct Marks {
        std::vector<std::vector<std::size_t>> awaits;
        std::vector<std::size_t> comesTo;
        std::vector<std::size_t> atEnd;
    };
    Marks marksOf(std::size_t r) const {
        const TrainingGraph& graph = *ranks_[r].graph;
        std::unordered_map<std::int64_t, std::size_t> index;
        for (std::size_t i = 0; i < graph.ops.size(); ++i) index[graph.ops[i].sessionId] = i;
        Marks marks{std::vector<std::vector<std::size_t>>(graph.ops.size()),
                    std::vector<std::size_t>(graph.ops.size(), kNobody),
                    {}};
        const auto& exchanges = *ranks_[r].exchanges;
        for (std::size_t e = 0; e < exchanges.size(); ++e) {
            const std::size_t rendezvous = rendezvousOf_[r][e];
            const auto at = index.find(exchanges[e].op);
            if (rendezvous == kNobody || at == index.end()) continue;
            if (exchanges[e].kind != Exchange::Kind::Receive)
                marks.comesTo[at->second] = rendezvous;
            if (exchanges[e].kind == Exchange::Kind::Send) continue;
            const auto use = exchanges[e].use ? index.find(*exchanges[e].use) : index.end();
            std::size_t waits = use != index.end() ? use->second : at->second + 1;
            if (use == index.end())
                while (waits < graph.ops.size() && graph.ops[waits].phase != Phase::Optimizer)
                    ++waits;
            (waits < graph.ops.size() ? marks.awaits[waits] : marks.atEnd).push_back(rendezvous);
        }
        return marks;
    }

    std::vector<Stretch> stretchesOf(std::size_t r) const {
        const TrainingGraph& graph = *ranks_[r].graph;
        const Schedule& schedule = *ranks_[r].schedule;
        std::vector<MemoryPoint> curve;
        evaluate(graph, schedule, curve);
        Marks marks = marksOf(r);
        std::vector<Stretch> list(1);
        for (std::size_t i = 0; i < curve.size(); ++i) {
            const auto target = static_cast<std::size_t>(schedule[i].target);
            const bool first = schedule[i].kind == ActionKind::Compute;
            if (first && !marks.awaits[target].empty())
                list.emplace_back().awaits = std::move(marks.awaits[target]);
            if (!first || !waitsForCollective(graph.ops[target].name))
                list.back().work += curve[i].end - curve[i].begin;
            if (!first || marks.comesTo[target] == kNobody) continue;
            list.back().comesTo = marks.comesTo[target];
            list.emplace_back();
        }
        list.emplace_back().awaits = std::move(marks.atEnd);
        return list;
    }

    bool advance(std::size_t r, const Stretch& stretch) {
        RankTime& rank = result_.ranks[r];
        for (const std::size_t each : stretch.awaits)
            if (rendezvous_[each].missing > 0) return false;
        for (const std::size_t each : stretch.awaits) {
            if (rendezvous_[each].done <= rank.end) continue;
            rank.waiting += rendezvous_[each].done - rank.end;
            rank.end = rendezvous_[each].done;
        }
        rank.end += stretch.work;
        if (stretch.comesTo == kNobody) return true;
        Rendezvous& rendezvous = rendezvous_[stretch.comesTo];
        if (rendezvous.missing > 0) --rendezvous.missing;
        rendezvous.done = std::max(rendezvous.done, rank.end);
        return true;
    }

    const std::vector<RankStep>& ranks_;
    std::vector<std::vector<std::size_t>> rendezvousOf_;  // by rank and exchange
    std::vector<Rendezvous> rendezvous_;
    std::vector<std::vector<Stretch>> stretches_;  // by rank
    StepTime result_;
};

}  // namespace

StepTime simulateStep(const std::vector<RankStep>& ranks) {
    return Simulation(ranks).run();
}

}  // namespace hw::core
