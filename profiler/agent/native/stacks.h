// SPDX-License-Identifier: MIT
// The Python call stack that led to an op: read at every op, described once.
//
// Ops run without Python's lock. The frames of a thread that is in an op stand still, so they are
// read as they lie in memory, without the lock and without a reference to anything; the shim has
// looked up where what lies (shim/stacks.py). Only a stack that is seen for the first time takes
// the lock, to ask what its code is called.
#pragma once

#include <c10/util/python_stub.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "frame.h"

namespace hw::profiler::native {

/// Offsets in bytes; filled by the shim.
struct FrameLayout {
    std::int64_t innermost = 0;  // in a thread's state: its innermost frame, or
    std::int64_t indirect = -1;  // what has that at this offset; -1: it lies there itself
    std::int64_t code = 0, instruction = 0, previous = 0;  // in a frame
    std::int64_t bytecode = 0;                             // in the code
    PyObject* codeType = nullptr;
};

/// What a session calls a place in the program's code.
struct SourceFrame {
    std::string file, function;
    std::int64_t line = 0;
    bool framework = false;  // of torch, not of the program
    bool hidden = false;     // of the recording itself, or of no code at all
};

class Stacks {
public:
    /// Where an op comes from, innermost first: instructions of code that runs.
    using Sites = std::vector<std::uintptr_t>;
    static constexpr std::int64_t kNone = -1, kNew = -2;
    static constexpr std::size_t kDeepest = 256;  // of a deeper one, the innermost frames

    explicit Stacks(Stream& stream) : stream_(stream) {}

    /// `frameworkFolder`: of torch, with its final slash.
    void start(wire::Stacks mode, const FrameLayout& layout, std::string frameworkFolder);
    bool on() const { return mode_ != wire::Stacks::Off; }

    /// Of the calling thread, with or without Python's lock; at most so many.
    void read(Sites& sites, std::size_t most = kDeepest) const;
    static std::uint64_t hash(const Sites& sites);
    /// The innermost of the program's own; null: there is none.
    static const SourceFrame* ownOf(const std::vector<const SourceFrame*>& frames);
    /// Its id; kNew: it has to be described and added. Under the session's lock.
    std::int64_t find(const Sites& sites) const;
    /// Takes Python's lock, so never under the session's. What it tells stays where it is.
    std::vector<const SourceFrame*> describe(Sites& sites);
    /// Sends what is new of it. Under the session's lock.
    std::int64_t add(const Sites& sites, const std::vector<const SourceFrame*>& frames);
    /// Lets go of the code. Under Python's lock.
    void release();

private:
    struct Known {
        Sites sites;
        std::int64_t id;
    };

    std::int64_t frameId(const SourceFrame& frame);
    const SourceFrame& described(std::uintptr_t site, PyObject* code);

    Stream& stream_;
    wire::Stacks mode_ = wire::Stacks::Off;
    FrameLayout layout_;
    std::string folder_;
    // Under the session's lock.
    std::unordered_map<std::uint64_t, Known> known_;  // by a hash of their sites
    std::unordered_map<const SourceFrame*, std::int64_t> frameIds_;
    std::unordered_map<std::string, std::int64_t> frameNames_;
    std::unordered_map<std::uint64_t, std::int64_t> nodes_;  // by parent and frame
    // Under Python's lock. An instruction is one of code that is held: its address stays its own.
    std::unordered_map<std::uintptr_t, SourceFrame> sources_;
    std::unordered_set<PyObject*> held_;
};

}  // namespace hw::profiler::native
