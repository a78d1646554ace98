// SPDX-License-Identifier: MIT
// The clocks of several machines, from what all ranks went through together. Each session has the
// clock of the machine that it was recorded on, which began when that machine did.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/result.h"
#include "core/session/session.h"

namespace hw::core {

/// How one session's clock becomes another one's.
struct ClockOffset {
    std::int64_t offsetNs = 0;  // to add to its times
    std::int64_t errorNs = 0;   // how far off that may be; see alignClock()
    std::int64_t moments = 0;   // from how many it was taken
};

/// When a rank has passed a collective, and when it came to it: no rank passes one before all have
/// come.
struct CollectiveMoment {
    std::int64_t step = 0;   // n-th that was recorded of its rank
    std::int64_t order = 0;  // n-th moment of the step
    std::int64_t cameNs = 0, passedNs = 0;
};

/// One end of a message. What is received is worked on after it has been sent.
struct MessageMoment {
    int peer = 0;  // rank of the other end
    std::int64_t tag = 0;
    std::int64_t step = 0;   // n-th that was recorded of its rank
    std::int64_t order = 0;  // n-th of the step between these two, this way, with this tag
    std::int64_t ns = 0;     // when it was sent, or when an op first worked on it
};

struct RankMoments {
    int rank = 0;
    std::vector<CollectiveMoment> passed;
    std::vector<MessageMoment> sent, received;
};

/// The moments of each rank of a session, in the order of its processes. A collective is passed
/// when the op that waits for it ends (`wait_tensor`). What is waited for without an op that shows
/// it, as c10d's works are, is passed when the optimizer begins: one moment of the step, to which
/// the rank came with its last collective. Errors: BadInput.
Result<std::vector<RankMoments>> rankMoments(const Session& session);

/// The median of how far apart two machines' ranks were when they passed the same collective. The
/// error is the median distance from it, or by how much a rank would have passed one before another
/// had come to it, where that is more. Where they passed none together, but sent each other
/// messages both ways, as stages of a pipeline do: the middle of what these allow, which the error
/// covers. Neither: all 0.
ClockOffset alignClock(const std::vector<RankMoments>& reference,
                       const std::vector<RankMoments>& other);

}  // namespace hw::core
