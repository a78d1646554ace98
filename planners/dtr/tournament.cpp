// SPDX-License-Identifier: MIT
#include "planners/dtr/tournament.h"

#include <algorithm>
#include <limits>

namespace hw::planners {

using namespace hw::core;

namespace {

constexpr double kNear = 1e-9;  // far more than what heights are off
constexpr std::int64_t kForGood = std::numeric_limits<std::int64_t>::max();

}  // namespace

TournamentHeuristic::TournamentHeuristic(DtrState& state, const HeuristicOptions& options)
    : EvictionHeuristic(state), largePool_(options.largePool), kept_(!options.some) {
    TournamentHeuristic::resize(state.storages.size());
}

void TournamentHeuristic::resize(std::size_t storages) {
    if (!kept_) return;
    lines_.resize(storages);
    order_.resize(storages);
    members_.resize((storages + 63) / 64);
    std::size_t leaves = 1;
    while (leaves < members_.size()) leaves *= 2;
    if (nodes_.size() != 2 * leaves) nodes_.assign(2 * leaves, {});
}

void TournamentHeuristic::entered(StorageIndex s) {
    if (!kept_) return;
    members_[s >> 6] |= std::uint64_t{1} << (s & 63);
    order_[s] = ++entries_;
    expire(s);
}

void TournamentHeuristic::left(StorageIndex s) {
    if (!kept_) return;
    members_[s >> 6] &= ~(std::uint64_t{1} << (s & 63));
    if (nodes_[nodes_.size() / 2 + (s >> 6)].highest == s) expire(s);
}

/// What its block, and all above it, know no longer holds.
void TournamentHeuristic::expire(StorageIndex s) {
    std::size_t node = nodes_.size() / 2 + (s >> 6);
    for (; node > 0 && nodes_[node].until != 0; node /= 2) nodes_[node].until = 0;
}

StorageIndex TournamentHeuristic::choose(const EvictionPool& pool) {
    if (!kept_ || pool.size() < largePool_) return EvictionHeuristic::choose(pool);
    for (;;) {
        play(1);
        const StorageIndex s = nodes_[1].highest;
        if (s == kNone) return EvictionHeuristic::choose(pool);
        if (hasSunk(s)) {
            expire(s);
            continue;
        }
        if (score(s) <= 0) return EvictionHeuristic::choose(pool);  // the order of the pool decides
        state_.evals += static_cast<std::int64_t>(pool.size());
        return s;
    }
}

void TournamentHeuristic::play(std::size_t node) {
    if (nodes_[node].until > now()) return;
    const std::size_t leaves = nodes_.size() / 2;
    if (node >= leaves)
        return playBlock(node, node - leaves < members_.size() ? members_[node - leaves] : 0);
    play(2 * node);
    play(2 * node + 1);
    Node one = nodes_[2 * node], other = nodes_[2 * node + 1];
    if (one.highest == kNone || (other.highest != kNone && goesFirst(other.highest, one.highest)))
        std::swap(one, other);
    nodes_[node] = {one.highest, std::min(one.until, other.until)};
    if (other.highest != kNone)
        nodes_[node].until = std::min(nodes_[node].until, heldUntil(one.highest, other.highest));
}

void TournamentHeuristic::playBlock(std::size_t node, std::uint64_t members) {
    const auto first = static_cast<StorageIndex>(64 * (node - nodes_.size() / 2));
    StorageIndex highest = kNone;
    for (std::uint64_t bits = members; bits != 0; bits &= bits - 1) {
        const StorageIndex s = first + lowestBit(bits);
        ++state_.accesses;
        lines_[s] = lineOf(s);
        if (highest == kNone || goesFirst(s, highest)) highest = s;
    }
    std::int64_t until = kForGood;
    for (std::uint64_t bits = members; bits != 0; bits &= bits - 1)
        if (const StorageIndex s = first + lowestBit(bits); s != highest)
            until = std::min(until, heldUntil(highest, s));
    nodes_[node] = {highest, until};
}

bool TournamentHeuristic::hasSunk(StorageIndex s) {
    ++state_.accesses;
    const Line line = lineOf(s);
    return line.weight != lines_[s].weight || line.since != lines_[s].since;
}

/// The clock before which the lower line is not the higher one.
std::int64_t TournamentHeuristic::heldUntil(StorageIndex higher, StorageIndex lower) const {
    const double gain = lines_[lower].weight - lines_[higher].weight;
    if (gain <= 0) return kForGood;
    const double high = height(higher);
    const double ahead = high - height(lower) - kNear * high;
    if (ahead <= gain) return now() + 1;
    const double held = ahead / gain;  // ns
    const auto left = static_cast<double>(kForGood - now());
    return held < left ? now() + static_cast<std::int64_t>(held) : kForGood;
}

/// Of equals, what came last into the pool; but what has sunk stands where it stood until it wins,
/// and is found out then.
bool TournamentHeuristic::goesFirst(StorageIndex a, StorageIndex b) {
    const Line &one = lines_[a], &other = lines_[b];
    const bool parallel = one.weight == other.weight && one.weight > 0;
    if (parallel && one.since != other.since) return one.since < other.since;
    const double high = height(a), than = height(b);
    if (!parallel && high > than * (1 + kNear)) return true;
    if (!parallel && than > high * (1 + kNear)) return false;
    if (hasSunk(a)) return true;
    if (hasSunk(b)) return false;
    if (parallel) return order_[a] > order_[b];
    const double costs = score(a), asMuch = score(b);
    return costs != asMuch ? costs < asMuch : order_[a] > order_[b];
}

}  // namespace hw::planners
