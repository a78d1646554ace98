// SPDX-License-Identifier: MIT
// What a step does, as it would be recorded, from the ops that come by under a budget: evictions
// and recomputations are no part of it. A planner reads it (live/compile/traced_step.h).
//
// It is not the registry of a recording (profiler/agent/native/registry.h). There a storage ends
// when its memory is freed. Here it ends when the program releases it: its memory may have been
// evicted earlier, or may be kept for a recomputation. tests/live/op_trace.h checks it on random
// programs.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "agent_api.h"
#include "call.h"
#include "operators.h"
#include "place.h"

namespace hw::live::runtime {

class StepTrace {
public:
    /// Whether the program itself refers to a storage.
    using Wanted = std::function<bool(c10::StorageImpl*)>;

    /// `live`: bytes when the step begins, evicted ones among them.
    /// `place`, which outlives it: of the op that begins.
    StepTrace(const profiler::native::AgentApi& agent, const Place& place, std::int64_t live)
        : agent_(agent), place_(place), untouched_(live) {}

    /// An op with these arguments begins; what the program has let go of since the last one is
    /// gone.
    void begin(const profiler::native::Operator& op, Values arguments, const Wanted& wanted);
    /// It has ended. `peak`: highest live bytes in it, less those before it, without evictions.
    void end(Values results, std::int64_t nanoseconds, std::int64_t peak);
    /// It has raised an exception: what it has written is not known, and the trace is worth
    /// nothing.
    void failed() { broken_ = true; }
    bool broken() const { return broken_; }
    /// The program may have let go of it. All that it lets go of is to be told of; where nobody
    /// can, untold() says so, and it is looked at again and again: with each op a few of them, so
    /// that an op costs the same however many they are.
    void mayBeGone(c10::StorageImpl* impl) { suspects_.push_back(impl); }
    void untold(c10::StorageImpl* impl);
    /// All that are known by now.
    void allUntold();
    /// Those that are there and are told of.
    std::vector<c10::StorageImpl*> told() const;
    /// How often one was looked at that nothing tells of.
    std::int64_t looks() const { return looks_; }
    std::size_t ops() const { return ops_.size(); }
    /// The step has ended.
    void finish(const Wanted& wanted);
    /// Takes the figures of a later step along. False: it has done something else.
    bool merge(const StepTrace& later);
    /// -1: it is in none, or the step has another op there.
    std::int64_t layerOf(std::int64_t op, const std::string& name) const;
    std::size_t steps() const { return ops_.empty() ? 0 : ops_.front().nanoseconds.size(); }
    /// JSON (live/compile/traced_step.h); of each op the median time and the smallest
    /// workspace.
    std::string json() const;

private:
    struct Known {
        std::int64_t index = 0;
        c10::weak_intrusive_ptr<c10::StorageImpl> weak;  // keeps the address from being used again
        std::int64_t version = 0;
        bool gone = false;
        bool untold = false;
    };

    struct Op {
        std::string name, text;
        std::int64_t layer = -1;
        std::vector<std::int64_t> nanoseconds;  // in each step
        std::int64_t workspace = 0;
    };

    struct Untold {
        c10::StorageImpl* impl;
        Known* known;
    };

    Known& known(c10::StorageImpl* impl, bool constant);
    std::int64_t tensor(const c10::TensorImpl& tensor);
    void noteReleases(const Wanted& wanted, std::size_t untold);
    void lookAtUntold(const Wanted& wanted, std::size_t most, std::vector<std::int64_t>& gone);
    static bool isGone(c10::StorageImpl* impl, Known& storage, const Wanted& wanted);
    std::vector<c10::StorageImpl*> alive() const;  // in the order in which they became known

    const profiler::native::AgentApi& agent_;
    const Place& place_;
    std::int64_t untouched_;  // live bytes that no op touches
    bool broken_ = false;
    Op op_;  // that goes on, as far as it is written
    std::vector<Op> ops_;
    std::string events_, bytes_, finals_;
    std::vector<std::string> tensors_;   // as far as steps of a kind agree
    std::vector<std::int64_t> offsets_;  // of these: a batch may be any slice of what is there
    std::string parameters_;             // storages of constants that want gradients
    std::string constants_;  // they are there from the beginning, whenever an op first reads them
    std::vector<c10::StorageImpl*> written_;
    std::vector<c10::StorageImpl*> suspects_;
    std::vector<Untold> untold_;
    std::size_t next_ = 0;  // of untold_, to be looked at
    std::int64_t looks_ = 0;
    std::unordered_map<c10::StorageImpl*, Known> storages_;
    std::map<std::tuple<std::int64_t, std::uint64_t, std::int64_t>, std::int64_t> numbers_;
    std::vector<std::int64_t> first_;  // tensor of each storage
};

}  // namespace hw::live::runtime
