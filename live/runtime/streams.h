// SPDX-License-Identifier: MIT
// The streams that a step's ops run on. What a plan runs again, it runs on the stream of each
// device on which it has first kept an op, so that its recomputations are ordered among themselves
// and with nearly everything else. Ops on other streams wait for them.
#pragma once

#include <c10/core/Stream.h>

#include <optional>
#include <utility>
#include <vector>

namespace hw::live::runtime {

class Streams {
public:
    void reset() {
        settled_.clear();
        early_.clear();
    }
    /// Ops run on a GPU: what they take is not known when they return.
    bool any() const { return !settled_.empty(); }
    /// An op is about to run on a GPU; `reads`: what is there. The first that does settles the
    /// stream. Returns earlier ops there that ran on another.
    std::vector<std::size_t> follow(c10::Device device, bool reads, std::size_t op);
    /// Whether this thread is on another stream of a device. What it queues from here on waits for
    /// what the plan has queued.
    bool elsewhere() const;
    /// Of the device; none: no op has read there yet.
    std::optional<c10::Stream> of(c10::Device device) const;
    /// What is queued on the one from here on runs after what is queued on the other now.
    static void letWait(c10::Stream one, c10::Stream other);
    /// Returns when what was queued on them is done.
    void wait() const;
    /// Runs the work on the plan's streams. Whatever it throws comes through.
    template <typename Work>
    void run(const Work& work) const {
        const Turn turn(*this);
        work();
    }

private:
    class Turn {
    public:
        explicit Turn(const Streams& streams);
        ~Turn();
        Turn(const Turn&) = delete;
        Turn& operator=(const Turn&) = delete;

    private:
        std::vector<c10::Stream> before_;  // of this thread
        const Streams& streams_;
    };

    std::vector<c10::Stream> settled_;                        // one a device
    std::vector<std::pair<std::size_t, c10::Stream>> early_;  // ops before their device's was
};

}  // namespace hw::live::runtime
