// SPDX-License-Identifier: MIT
#include "planners/dtr.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/memory/rebuild.h"

namespace hw::planners {
namespace {

using namespace hw::core;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

__extension__ using Wide = unsigned __int128;

int bitLength(Wide value) {
    const auto high = static_cast<std::uint64_t>(value >> 64);
    return high != 0 ? 128 - std::countl_zero(high)
                     : 64 - std::countl_zero(static_cast<std::uint64_t>(value));
}

// numerator / denominator rounded once to the nearest double, ties to even, for any magnitude below
// 2^100: 118 quotient bits by two long divisions, the rest as a sticky bit.
double divideExactly(std::uint64_t numerator, Wide denominator) {
    if (numerator == 0) return 0.0;
    const int shift = 127 - bitLength(numerator);
    const Wide scaled = static_cast<Wide>(numerator) << shift;
    Wide quotient = scaled / denominator;
    Wide rest = scaled % denominator;
    int exponent = -shift;
    while (bitLength(quotient) < 64 && rest != 0) {
        const int step = std::min(128 - bitLength(denominator), 64 - bitLength(quotient));
        rest <<= step;
        quotient = (quotient << step) | (rest / denominator);
        rest %= denominator;
        exponent -= step;
    }
    const int surplus = bitLength(quotient) - 64;
    if (surplus > 0) {
        rest |= quotient & ((static_cast<Wide>(1) << surplus) - 1);
        quotient >>= surplus;
        exponent += surplus;
    }
    auto bits = static_cast<std::uint64_t>(quotient);  // 64 significant bits or fewer, then exact
    if (std::countl_zero(bits) > 0) return std::ldexp(static_cast<double>(bits), exponent);
    const std::uint64_t low = bits & 0x7ff;
    bits >>= 11;
    if (low > 0x400 || (low == 0x400 && (rest != 0 || (bits & 1) != 0))) ++bits;
    return std::ldexp(static_cast<double>(bits), exponent + 11);
}

// A score as the reference computes it: integers divided with one rounding. The quotient in
// extended precision settles all cases but those next to a rounding boundary.
static_assert(std::numeric_limits<long double>::digits == 64,
              "score() reads x87 extended precision");

double score(std::int64_t numerator, std::int64_t size, std::int64_t staleness) {
    if (size <= 0 || staleness <= 0) return kInfinity;
    if (numerator == 0) return 0.0;
    const Wide denominator = static_cast<Wide>(size) * static_cast<Wide>(staleness);
    const auto magnitude = static_cast<std::uint64_t>(numerator < 0 ? -numerator : numerator);
    const long double quotient =
        static_cast<long double>(magnitude) / static_cast<long double>(denominator);
    std::uint64_t mantissa = 0;  // x87 extended: 64 bits, the leading one among them
    std::memcpy(&mantissa, &quotient, sizeof mantissa);
    const auto low = static_cast<std::int64_t>(mantissa & 0x7ff);
    const bool settled = std::abs(low - 0x400) > 4;
    const double result =
        settled ? static_cast<double>(quotient) : divideExactly(magnitude, denominator);
    return numerator < 0 ? -result : result;
}

struct Stop {
    PlanStatus status;
    std::string reason;
};

// Union-find over evicted storages; each root holds the compute of its class.
class EquivalenceClasses {
public:
    int add(std::int64_t value) {
        nodes_.push_back({static_cast<int>(nodes_.size()), value, -1});
        return static_cast<int>(nodes_.size()) - 1;
    }
    int root(int node) {
        int top = node;
        while (nodes_[top].parent != top) top = nodes_[top].parent;
        while (nodes_[node].parent != top) node = std::exchange(nodes_[node].parent, top);
        return top;
    }
    std::int64_t& value(int node) { return nodes_[root(node)].value; }
    void merge(int from, int into) {
        const int a = root(from), b = root(into);
        if (a == b) return;
        nodes_[a].parent = b;
        nodes_[b].value += nodes_[a].value;
    }
    // True once per class and stamp: for sums over distinct classes.
    bool firstSight(int node, std::int64_t stamp) {
        Node& at = nodes_[root(node)];
        return std::exchange(at.stamp, stamp) != stamp;
    }

private:
    struct Node {
        int parent;
        std::int64_t value;
        std::int64_t stamp;
    };
    std::vector<Node> nodes_;
};

class Runtime {
public:
    Runtime(const TrainingGraph& graph, const PlanRequest& request, const Progress& progress)
        : graph_(graph),
          request_(request),
          progress_(progress),
          simulated_(graph.framework == "simrd"),
          info_(simulated_ ? RebuildInfo{} : rebuildInfo(graph)),
          state_(graph.storages.size()),
          defined_(graph.tensors.size(), false),
          poolNext_(graph.storages.size() + 1),
          poolPrevious_(graph.storages.size() + 1),
          rematLimit_(static_cast<double>(graph.totalTime().count()) * (request.thrashLimit - 1)) {
        poolEnd_ = static_cast<StorageIndex>(graph.storages.size());
        poolNext_[poolEnd_] = poolPrevious_[poolEnd_] = poolEnd_;
        if (!simulated_) planConstantFrees();
    }

    Proposal run() {
        Proposal proposal;
        try {
            for (const Event& event : graph_.events) {
                switch (event.kind) {
                    case Event::Kind::Constant:
                        arrive(event.index);
                        break;
                    case Event::Kind::Compute:
                        computeFirst(event.index);
                        break;
                    case Event::Kind::Release:
                        release(event.index);
                        break;
                }
            }
            for (const TensorIndex tensor : graph_.finalTensors) {
                const StorageIndex s = graph_.storageOf(tensor);
                need({tensor, static_cast<std::int32_t>(graph_.storages[s].writers.size())});
                pin(s);
            }
            proposal.status = PlanStatus::Ok;
        } catch (Stop& stop) {
            proposal.status = stop.status;
            proposal.reason = std::move(stop.reason);
        }
        proposal.figures = {
            {"clock", clock_}, {"evals", evals_}, {"accesses", accesses_}, {"peak", peak_}};
        if (proposal.status == PlanStatus::Ok) proposal.schedule = std::move(schedule_);
        return proposal;
    }

private:
    struct State {
        bool material = false;
        bool everMaterial = false;
        bool pinned = false;
        bool dead = false;  // released by the program
        int locks = 0;
        std::int32_t version = 0;
        int classNode = -1;
        std::int64_t compute = 0;  // time of the ops that made the storage and its tensors so far
        std::int64_t lastAccess = 0;           // clock
        std::vector<StorageIndex> neighbours;  // joined by an op, either way
    };

    std::int64_t bytes(StorageIndex s) const { return graph_.storages[s].bytes.count(); }

    // --- the pool of evictable storages, in the order in which they became evictable
    void addToPool(StorageIndex s) {
        const StorageIndex last = poolPrevious_[poolEnd_];
        poolNext_[last] = s, poolPrevious_[s] = last;
        poolNext_[s] = poolEnd_, poolPrevious_[poolEnd_] = s;
    }
    void removeFromPool(StorageIndex s) {
        poolNext_[poolPrevious_[s]] = poolNext_[s];
        poolPrevious_[poolNext_[s]] = poolPrevious_[s];
    }
    void lock(StorageIndex s) {
        if (state_[s].locks++ == 0) removeFromPool(s);
    }
    void unlock(StorageIndex s) {
        if (--state_[s].locks == 0) addToPool(s);
    }
    void pin(StorageIndex s) {
        if (state_[s].pinned) return;
        lock(s);
        state_[s].pinned = true;
    }

    // --- the program
    void arrive(StorageIndex s) {
        State& state = state_[s];
        state.classNode = classes_.add(0);
        makeRoom(bytes(s), kNone);
        memory_ += bytes(s);
        peak_ = std::max(peak_, memory_);
        becomeMaterial(s);
        for (const TensorIndex tensor : graph_.storages[s].tensors)
            if (graph_.tensors[tensor].creator == kNone) defined_[tensor] = true;
        pin(s);
    }

    void computeFirst(OpIndex index) {
        now_ = index;
        if (index % 64 == 0) {
            if (progress_.cancelled()) throw Stop{PlanStatus::Cancelled, "cancelled"};
            progress_.report(static_cast<double>(index) / static_cast<double>(graph_.ops.size()),
                             "running");
        }
        connect(index);
        materialize(index, kNone, false);
        for (const OpOutput& output : graph_.ops[index].outputs)
            state_[graph_.storageOf(output.tensor)].lastAccess = clock_;
        if (!constantFrees_.empty())
            for (const StorageIndex s : constantFrees_[index]) freeForGood(s);
    }

    // Enters the op's edges into the neighbourhoods, before anything is evicted for it.
    void connect(OpIndex index) {
        const Op& op = graph_.ops[index];
        touched_.clear();
        for (const OpOutput& output : op.outputs) touch(graph_.storageOf(output.tensor));
        for (const Write& write : op.writes) touch(write.storage);
        for (const StorageIndex s : touched_) {
            state_[s].compute += op.time.count();
            // The simulator gives a storage its class before it is first computed, and takes its
            // compute out of the class afterwards, where it never was: classes shrink, and what a
            // long evicted chain leads up to looks cheap. Recorded sessions do without.
            if (simulated_ && !state_[s].everMaterial) state_[s].classNode = classes_.add(0);
        }
        for (const Use& use : op.inputs) {
            const StorageIndex input = graph_.storageOf(use.tensor);
            if (graph_.storages[input].isConstant()) continue;
            for (const StorageIndex s : touched_) {
                if (s == input || graph_.storages[s].isConstant()) continue;
                state_[s].neighbours.push_back(input);
                state_[input].neighbours.push_back(s);
            }
        }
    }
    void touch(StorageIndex s) {
        if (std::find(touched_.begin(), touched_.end(), s) == touched_.end()) touched_.push_back(s);
    }

    void release(StorageIndex s) {
        State& state = state_[s];
        state.dead = true;
        if (graph_.storages[s].isConstant()) {
            if (!simulated_ && constantNeeds_[s] <= now_) freeForGood(s);
            return;
        }
        if (state.pinned) state.pinned = false, unlock(s);
        if (state.material) evict(s);
    }

    // Constants of a recorded session leave after their release, once no rebuild can read them.
    void planConstantFrees() {
        constantFrees_.resize(graph_.ops.size());
        constantNeeds_.assign(graph_.storages.size(), kNone);
        OpIndex done = kNone;
        for (const Event& event : graph_.events) {
            if (event.kind == Event::Kind::Compute) done = event.index;
            if (event.kind != Event::Kind::Release || !graph_.storages[event.index].isConstant())
                continue;
            const OpIndex need = info_.neededUntil[event.index];
            constantNeeds_[event.index] = need;
            if (need > done && need < static_cast<OpIndex>(graph_.ops.size()))
                constantFrees_[need].push_back(event.index);
        }
    }
    void freeForGood(StorageIndex s) {
        if (!state_[s].material) return;
        state_[s].material = false;
        memory_ -= bytes(s);
        schedule_.push_back(Action::free(s));
        for (const TensorIndex tensor : graph_.storages[s].tensors) defined_[tensor] = false;
    }

    // --- materialization
    bool satisfied(const Use& use) const {
        return defined_[use.tensor] && state_[graph_.storageOf(use.tensor)].version == use.version;
    }

    void need(const Use& use) {
        if (satisfied(use)) return;
        const StorageIndex s = graph_.storageOf(use.tensor);
        if (!graph_.storages[s].writers.empty()) rebuildVersions(s, use.version);
        if (!satisfied(use)) {
            const OpIndex creator = graph_.tensors[use.tensor].creator;
            if (creator == kNone || defined_[use.tensor])
                throw Stop{PlanStatus::Infeasible,
                           "storage " + std::to_string(s) + " cannot be rebuilt"};
            materialize(creator, use.tensor, true);
        }
    }

    // Creator, then writers in captured order, and the views that were taken before each write.
    void rebuildVersions(StorageIndex s, std::int32_t version) {
        const Storage& storage = graph_.storages[s];
        if (!state_[s].material && storage.creator != kNone) {
            materialize(storage.creator, storage.tensors.front(), true);
        }
        for (const OpIndex index : info_.chain[s]) {
            if (state_[s].version >= version) break;
            if (index == storage.creator || index > now_) continue;
            const Op& op = graph_.ops[index];
            std::int32_t at = kNone;
            for (const Use& use : op.inputs)
                if (graph_.storageOf(use.tensor) == s) at = use.version;
            for (const Write& write : op.writes)
                if (write.storage == s) at = write.versionBefore;
            if (at == state_[s].version) materialize(index, kNone, true);
        }
    }

    void materialize(OpIndex index, TensorIndex wanted, bool again) {
        const Op& op = graph_.ops[index];
        for (const Use& use : op.inputs) state_[graph_.storageOf(use.tensor)].lastAccess = clock_;
        // Locks first on what is there, so that rebuilding one input does not evict another.
        std::vector<Use> missing;
        for (const Use& use : op.inputs) {
            if (satisfied(use))
                lock(graph_.storageOf(use.tensor));
            else
                missing.push_back(use);
        }
        for (const Use& use : missing) {
            need(use);
            lock(graph_.storageOf(use.tensor));
        }
        std::int64_t outputs = 0;
        for (const OpOutput& output : op.outputs)
            if (output.makesStorage) outputs += bytes(graph_.storageOf(output.tensor));
        makeRoom(outputs + op.workspace.count(), index);
        execute(index, wanted, again, outputs);
        for (const Use& use : op.inputs) unlock(graph_.storageOf(use.tensor));
        if (again) rematTime_ += op.time.count();
        if (static_cast<double>(rematTime_) > rematLimit_)
            throw Stop{PlanStatus::Thrash,
                       "rematerialization took longer than the thrash limit allows"};
    }

    void execute(OpIndex index, TensorIndex wanted, bool again, std::int64_t outputBytes) {
        const Op& op = graph_.ops[index];
        clock_ += op.time.count();
        memory_ += outputBytes;
        peak_ = std::max(peak_, memory_ + op.workspace.count());
        if (op.outputs.empty() || wanted == kNone)
            wanted = op.outputs.empty() ? kNone : op.outputs.front().tensor;

        std::vector<std::int32_t> kept;
        std::vector<StorageIndex> made;  // siblings in result order, the wanted one last
        StorageIndex wantedMade = kNone;
        for (std::size_t j = 0; j < op.outputs.size(); ++j) {
            const TensorIndex tensor = op.outputs[j].tensor;
            const StorageIndex s = graph_.storageOf(tensor);
            const bool makes = op.outputs[j].makesStorage;
            if (defined_[tensor] || (makes && again && tensor != wanted && uselessSibling(s))) {
                if (makes) memory_ -= bytes(s);
                continue;
            }
            if (!makes && !state_[s].material) continue;
            if (!state_[s].material) {
                if (tensor == wanted)
                    wantedMade = s;
                else
                    made.push_back(s);
                state_[s].material = true;
                state_[s].version = 0;
                for (const TensorIndex other : graph_.storages[s].tensors)
                    if (graph_.tensors[other].creator == kNone) defined_[other] = true;
            }
            defined_[tensor] = true;
            kept.push_back(static_cast<std::int32_t>(j));
        }
        if (wantedMade != kNone) made.push_back(wantedMade);
        for (const Write& write : op.writes) ++state_[write.storage].version;
        for (const StorageIndex s : made) becomeMaterial(s);
        schedule_.push_back(again ? Action::recompute(index, std::move(kept))
                                  : Action::compute(index));
    }

    // The simulator brings every sibling back; in a recorded session the dead and the overwritten
    // stay away.
    bool uselessSibling(StorageIndex s) const {
        return !simulated_ && (state_[s].dead || !graph_.storages[s].writers.empty());
    }

    void becomeMaterial(StorageIndex s) {
        State& state = state_[s];
        state.material = state.everMaterial = true;
        addToPool(s);
        if (state.classNode >= 0) {
            classes_.value(state.classNode) -= state.compute;
            state.classNode = -1;
        }
        if (!simulated_ && !graph_.storages[s].isConstant() && !info_.rematerializable[s] &&
            !state.dead)
            pin(s);
    }

    // --- eviction
    void makeRoom(std::int64_t size, OpIndex forOp) {
        while (memory_ + size > request_.budget.count()) {
            const StorageIndex victim = choose();
            if (victim == poolEnd_)
                throw Stop{PlanStatus::Infeasible,
                           (forOp == kNone ? std::string("a constant")
                                           : "op " + std::to_string(forOp) + " (" +
                                                 graph_.ops[forOp].name + ")") +
                               " needs " + humanBytes(Bytes(size)) +
                               " more than can be evicted at this point"};
            evict(victim);
        }
    }

    StorageIndex choose() {
        double best = kInfinity;
        StorageIndex chosen = poolEnd_;
        for (StorageIndex s = poolNext_[poolEnd_]; s != poolEnd_; s = poolNext_[s]) {
            const double cost = evaluateScore(s);
            if (cost <= best) best = cost, chosen = s;  // among equals the last
            if (cost == 0) break;
        }
        return chosen;
    }

    // h_eq of section 4.1: (own compute + compute of the distinct evicted classes next to it) /
    // (size x staleness)
    double evaluateScore(StorageIndex s) {
        ++evals_;
        ++accesses_;
        State& state = state_[s];
        std::int64_t compute = state.compute;
        ++stamp_;
        for (const StorageIndex neighbour : state.neighbours) {
            ++accesses_;
            const State& other = state_[neighbour];
            if (!other.material && other.classNode >= 0 &&
                classes_.firstSight(other.classNode, stamp_))
                compute += classes_.value(other.classNode);
        }
        return score(compute, bytes(s), clock_ - state.lastAccess);
    }

    void evict(StorageIndex s) {
        State& state = state_[s];
        state.material = false;
        memory_ -= bytes(s);
        removeFromPool(s);
        for (const TensorIndex tensor : graph_.storages[s].tensors) defined_[tensor] = false;
        schedule_.push_back(Action::free(s));
        state.classNode = classes_.add(state.compute);
        for (const StorageIndex neighbour : state.neighbours) {
            const State& other = state_[neighbour];
            if (!other.material && other.classNode >= 0)
                classes_.merge(other.classNode, state.classNode);
        }
    }

    const TrainingGraph& graph_;
    const PlanRequest& request_;
    const Progress& progress_;
    const bool simulated_;    // a log of the simulator: follow it to the letter
    const RebuildInfo info_;  // of a recorded session
    std::vector<State> state_;
    std::vector<bool> defined_;
    std::vector<StorageIndex> poolNext_, poolPrevious_, touched_;
    StorageIndex poolEnd_ = 0;
    EquivalenceClasses classes_;
    std::vector<std::vector<StorageIndex>>
        constantFrees_;  // [op]: constants to free right after it
    std::vector<OpIndex> constantNeeds_;
    Schedule schedule_;
    OpIndex now_ = kNone;
    std::int64_t memory_ = 0, peak_ = 0, clock_ = 1, evals_ = 0, accesses_ = 0, stamp_ = 0,
                 rematTime_ = 0;
    double rematLimit_;
};

}  // namespace

Proposal Dtr::plan(const TrainingGraph& graph, const PlanRequest& request,
                   const Progress& progress) const {
    static_cast<void>(heuristic_);  // one so far
    return Runtime(graph, request, progress).run();
}

}  // namespace hw::planners
