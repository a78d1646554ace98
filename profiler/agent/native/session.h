// SPDX-License-Identifier: MIT
// The state of a recording, and running parts of it without ever raising into the program.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <exception>
#include <mutex>

#include "registry.h"

namespace hw::profiler::native {

inline constexpr std::int64_t kBackwardLayer = -2;  // the layer of autograd's node that runs

/// Which layer a node of autograd belongs to, by its sequence number: nodes get them in the order
/// in which they are made.
class NodeLayers {
public:
    /// Nodes made from `next` on belong to the layer.
    void mark(std::uint64_t next, std::int64_t layer) {
        while (!marks_.empty() && marks_.back().first >= next) marks_.pop_back();
        if (marks_.empty() || marks_.back().second != layer) marks_.emplace_back(next, layer);
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
    std::vector<std::pair<std::uint64_t, std::int64_t>> marks_;  // first node, layer
};

struct Session {
    Session(const AgentApi& api, bool contents)
        : agent(api), stream(agent), registry(agent, stream, contents) {}

    AgentApi agent;
    Stream stream;
    Registry registry;
    std::mutex lock;
    bool failed = false;
    std::string fault;
    std::int64_t ops = 0;
    std::int64_t layer = -1;  // where the program is, kBackwardLayer: as autograd says
    std::int64_t backwardLayer = -1;
    Phase phase = Phase::Forward;
    NodeLayers nodes;
    std::vector<std::pair<at::Generator, std::int64_t>> generators;  // epoch of the state sent
    at::CallbackHandle handles[2]{};
    bool entered = false;
    std::int64_t gapTensors = 0;

    std::int64_t layerNow() const { return layer == kBackwardLayer ? backwardLayer : layer; }
};
inline Session* gSession = nullptr;  // outlives the program: its last ops may still be looked at

inline void fail(Session& session, const char* what) {
    if (session.failed) return;
    session.failed = true;
    session.fault = what;
}

/// Runs a part of the capture; nothing of ours is ever raised into the program.
template <typename Body>
bool guarded(Session& session, const Body& body) {
    const std::lock_guard<std::mutex> guard(session.lock);
    if (session.failed) return false;
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
