// SPDX-License-Identifier: MIT
// What an agent has written and the recorder has not got round to yet.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "profiler/recorder/ring_reader.h"
#include "profiler/wire/frame_reader.h"

namespace hw::profiler {

/// Empties the ring on a thread of its own, so that a training whose steps come faster than they
/// are written into the session does not wait: its records are kept in memory, and beyond
/// `mostInMemory` bytes in a file without a name. Where that cannot grow, they stay in the ring,
/// and the training waits.
class Backlog {
public:
    static constexpr std::size_t kMostInMemory = 64u << 20;

    /// `folder`: of the file, where that has files without a name; else that of temporary files.
    explicit Backlog(std::string folder, std::size_t mostInMemory = kMostInMemory);
    ~Backlog();
    Backlog(const Backlog&) = delete;
    Backlog& operator=(const Backlog&) = delete;

    /// For the agent; -1: there is no memory for a ring.
    int ringFile() const { return ring_.file(); }
    void start();
    /// The next part goes into the reader. False: there is none.
    bool take(wire::FrameReader& reader);
    /// What the agent has written until now is the last; whatever it still writes is thrown away.
    void end();
    bool isEmpty() const;
    /// The agent claims what cannot be.
    bool nonsense() const { return ring_.nonsense(); }

private:
    struct Part {
        std::vector<std::byte> bytes;  // empty: in the file
        std::int64_t offset = 0;       // there
        std::size_t size = 0;
    };

    void work();
    bool moveOnce();
    bool add(std::span<const std::byte> bytes);
    bool addToFile(std::span<const std::byte> bytes);
    bool openFile();
    std::vector<std::byte> read(const Part& part);

    const std::string folder_;
    const std::size_t mostInMemory_;
    RingReader ring_;
    mutable std::mutex mutex_;  // of all below
    std::condition_variable wake_;
    std::deque<Part> parts_;
    std::size_t inMemory_ = 0, inFile_ = 0;  // bytes
    int file_ = -1;
    bool noFile_ = false;
    std::int64_t fileEnd_ = 0;
    bool ended_ = false, stopping_ = false;
    std::thread thread_;
};

}  // namespace hw::profiler
