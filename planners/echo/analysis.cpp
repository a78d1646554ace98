// SPDX-License-Identifier: MIT
#include "planners/echo/analysis.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace hw::planners {
namespace {

using namespace hw::core;

// Union-find over storages with the bytes of each set.
class Groups {
public:
    explicit Groups(const TrainingGraph& graph) : parent_(graph.storages.size()) {
        std::iota(parent_.begin(), parent_.end(), 0);
        bytes_.reserve(graph.storages.size());
        for (const Storage& storage : graph.storages) bytes_.push_back(storage.bytes);
    }
    StorageIndex root(StorageIndex s) {
        while (parent_[s] != s) s = parent_[s] = parent_[parent_[s]];
        return s;
    }
    Bytes& bytes(StorageIndex s) { return bytes_[root(s)]; }
    void merge(StorageIndex a, StorageIndex b) {
        a = root(a), b = root(b);
        if (a == b) return;
        parent_[a] = b;
        bytes_[b] += bytes_[a];
    }

private:
    std::vector<StorageIndex> parent_;
    std::vector<Bytes> bytes_;
};

}  // namespace

EchoAnalysis::EchoAnalysis(const TrainingGraph& graph, const RebuildInfo& info,
                           const ForwardPass& forward, std::vector<bool> keep)
    : graph_(graph), info_(info), forward_(forward), keep_(std::move(keep)) {
    classify();
}

// Nanoseconds for each byte made, against the mean of the forward pass. A writer in place makes the
// bytes that it writes.
void EchoAnalysis::classify() {
    const OpIndex end = forward_.end();
    heavy_.assign(graph_.ops.size(), false);
    std::vector<Bytes> made(end);
    Bytes allBytes;
    Nanoseconds allTime;
    for (OpIndex index = 0; index < end; ++index) {
        const Op& op = graph_.ops[index];
        for (const OpOutput& output : op.outputs)
            if (output.makesStorage)
                made[index] += graph_.storages[graph_.storageOf(output.tensor)].bytes;
        for (const Write& write : op.writes) made[index] += graph_.storages[write.storage].bytes;
        if (made[index] == Bytes(0)) continue;
        allBytes += made[index];
        allTime += op.time;
    }
    const double mean = static_cast<double>(allTime.count()) /
                        static_cast<double>(std::max<std::int64_t>(allBytes.count(), 1));
    for (OpIndex index = 0; index < end; ++index)
        heavy_[index] =
            made[index] > Bytes(0) && static_cast<double>(graph_.ops[index].time.count()) >
                                          mean * static_cast<double>(made[index].count());
}

bool EchoAnalysis::cheap(StorageIndex s) const {
    const Storage& storage = graph_.storages[s];
    return info_.rematerializable[s] && !storage.aliveAtEnd && !keep_[s] &&
           std::none_of(info_.chain[s].begin(), info_.chain[s].end(),
                        [&](OpIndex op) { return heavy_[op]; });
}

RecomputeSet EchoAnalysis::expand() const {
    RecomputeSet set(graph_.storages.size(), false);
    std::vector<StorageIndex> open;
    for (const StorageIndex s : forward_.storages())
        if (forward_.saved(s) && cheap(s)) set[s] = true, open.push_back(s);
    while (!open.empty()) {
        const StorageIndex s = open.back();
        open.pop_back();
        for (const StorageIndex input : forward_.reads(s)) {
            if (set[input] || graph_.storages[input].isConstant() || !cheap(input)) continue;
            set[input] = true;
            open.push_back(input);
        }
    }
    return set;
}

// What is in the set for the sake of others only leaves when these have left.
void EchoAnalysis::dropUseless(RecomputeSet& set) const {
    std::vector<bool> wanted(set.size(), false);
    for (auto s = forward_.storages().rbegin(); s != forward_.storages().rend(); ++s) {
        if (!set[*s]) continue;
        if (!forward_.saved(*s) && !wanted[*s]) {
            set[*s] = false;
            continue;
        }
        for (const StorageIndex input : forward_.reads(*s)) wanted[input] = true;
    }
}

bool EchoAnalysis::trimOnce(RecomputeSet& set) const {
    // Shared use references: ops of the set, told apart by their creator, that read a storage.
    std::vector<int> references(set.size(), 0);
    std::vector<OpIndex> lastReader(set.size(), kNone);
    for (const StorageIndex s : forward_.storages()) {
        if (!set[s]) continue;
        const OpIndex creator = graph_.storages[s].creator;
        for (const StorageIndex input : forward_.reads(s))
            if (std::exchange(lastReader[input], creator) != creator) ++references[input];
    }
    bool changed = false;
    const std::vector<StorageIndex>& made = forward_.storages();
    for (std::size_t first = 0, next = 0; first < made.size(); first = next) {
        const OpIndex creator = graph_.storages[made[first]].creator;
        std::vector<StorageIndex> inputs;
        double outputs = 0, price = 0;
        for (next = first; next < made.size(); ++next) {
            const StorageIndex s = made[next];
            if (graph_.storages[s].creator != creator) break;
            if (!set[s]) continue;
            outputs += static_cast<double>(graph_.storages[s].bytes.count());
            for (const StorageIndex input : forward_.reads(s))
                if (std::find(inputs.begin(), inputs.end(), input) == inputs.end())
                    inputs.push_back(input);
        }
        for (const StorageIndex input : inputs)
            if (!set[input] && !graph_.storages[input].isConstant() && !forward_.saved(input))
                price +=
                    static_cast<double>(graph_.storages[input].bytes.count()) / references[input];
        if (price == 0 || price < outputs) continue;
        for (std::size_t i = first; i < next; ++i) set[made[i]] = false;
        for (const StorageIndex input : inputs) --references[input];
        changed = true;
    }
    return changed;
}

void EchoAnalysis::trim(RecomputeSet& set) const {
    do dropUseless(set);
    while (trimOnce(set));
}

void EchoAnalysis::split(RecomputeSet& set, Bytes limit) const {
    Groups groups(graph_);
    for (const StorageIndex s : forward_.storages()) {
        if (!set[s]) continue;
        for (const StorageIndex input : forward_.reads(s)) {
            if (!set[input] || groups.root(input) == groups.root(s)) continue;
            if (groups.bytes(input) + groups.bytes(s) <= limit) {
                groups.merge(input, s);
            } else {
                set[input] = false;
                groups.bytes(input) -= graph_.storages[input].bytes;
            }
        }
    }
    dropUseless(set);
}

Bytes EchoAnalysis::bytesOf(const RecomputeSet& set) const {
    Bytes sum;
    for (const StorageIndex s : forward_.storages())
        if (set[s]) sum += graph_.storages[s].bytes;
    return sum;
}

}  // namespace hw::planners
