// SPDX-License-Identifier: MIT
// The state of a recording, and running parts of it without ever raising into the program.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/record_function.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "registry.h"
#include "stacks.h"
#include "unseen_writes.h"

namespace hw::profiler::native {

/// Where a node of autograd was made, a layer or a stack, by its sequence number: nodes get them in
/// the order in which they are made.
class NodeOrigins {
public:
    /// Nodes made from `next` on come from there.
    void mark(std::uint64_t next, std::int64_t origin) {
        while (!marks_.empty() && marks_.back().first >= next) marks_.pop_back();
        if (marks_.empty() || marks_.back().second != origin) marks_.emplace_back(next, origin);
        if (marks_.size() > kMost) marks_.erase(marks_.begin(), marks_.begin() + kMost / 2);
    }
    std::int64_t of(std::uint64_t node, std::int64_t otherwise) const {
        const auto after = std::upper_bound(
            marks_.begin(), marks_.end(), node,
            [](std::uint64_t value, const auto& mark) { return value < mark.first; });
        return after == marks_.begin() ? otherwise : std::prev(after)->second;
    }

private:
    static constexpr std::size_t kMost = 1u << 20;
    std::vector<std::pair<std::uint64_t, std::int64_t>> marks_;  // first node, origin
};

/// Almost always free: only a backward on several devices has more than one thread.
class SpinLock {
public:
    void lock() {
        while (taken_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
        holder_.store(pthread_self(), std::memory_order_relaxed);
    }
    void unlock() {
        holder_.store(0, std::memory_order_relaxed);
        taken_.clear(std::memory_order_release);
    }
    bool isMine() const { return holder_.load(std::memory_order_relaxed) == pthread_self(); }

private:
    std::atomic_flag taken_ = ATOMIC_FLAG_INIT;
    std::atomic<pthread_t> holder_{0};
};

/// Where the program is: the shim writes it straight into memory, a call would cost more. Outlives
/// every recording.
struct Context {
    std::int64_t layer = -1;  // kBackwardLayer: as autograd says
    std::int64_t phase = static_cast<std::int64_t>(Phase::Forward);
    std::int64_t failed = 0;
};
inline Context gContext;

struct Session {
    Session(const AgentApi& api, bool contents)
        : agent(api),
          stream(agent),
          registry(agent, stream, contents),
          stacks(stream),
          unseen(agent) {}

    AgentApi agent;
    Stream stream;
    Registry registry;
    Stacks stacks;
    UnseenWrites unseen;
    SpinLock lock;
    std::string fault;
    std::int64_t ops = 0;
    std::int64_t backwardLayer = -1;
    std::int64_t backwardStack = Stacks::kNone;  // of the op that made the node that runs
    NodeOrigins nodes, nodeStacks;
    std::vector<std::pair<at::Generator, std::int64_t>> generators;  // epoch of the state sent
    std::int64_t gapTensors = 0;
    bool missedBlocks = false;  // of the GPU, and the recording says so

    std::int64_t layerNow() const {
        return gContext.layer == kBackwardLayer ? backwardLayer : gContext.layer;
    }
    bool failed() const { return gContext.failed != 0; }
};
inline Session* gSession = nullptr;  // outlives the program: its last ops may still be looked at
inline Session* gLastSession = nullptr;  // an op of it may still run where it was left unasked

inline void fail(Session& session, const char* what) {
    if (session.failed()) return;
    gContext.failed = 1;
    session.fault = what;
}

/// Runs a part of the capture; nothing of ours is ever raised into the program. False where it has
/// failed, or where a tensor of a class of the program's, asked for its sizes, runs ops to answer.
template <typename Body>
bool guarded(Session& session, const Body& body) {
    if (session.lock.isMine()) return false;
    const std::lock_guard<SpinLock> guard(session.lock);
    if (session.failed()) return false;
    try {
        body();
        return true;
    } catch (const Broken&) {
        fail(session, "");
    } catch (const std::exception& error) {
        fail(session, error.what());
    } catch (...) {
        fail(session, "an unknown exception");
    }
    return false;
}

}  // namespace hw::profiler::native
