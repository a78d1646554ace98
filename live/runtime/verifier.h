// SPDX-License-Identifier: MIT
// The promise checks itself: what is dropped leaves a checksum, what is recomputed is compared.
#pragma once

#include <ATen/core/function_schema.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent_api.h"
#include "device_sums.h"
#include "mismatch.h"
#include "observer.h"
#include "streams.h"

namespace hw::live::runtime {

/// Null: there are none.
inline const char* bytesOf(const c10::StorageImpl& storage) {
    return static_cast<const char*>(storage.data_ptr().get());
}

/// Which bytes of what is dropped are compared. Auto: all as long as that takes at most 1 % of a
/// step, else the largest sample that does.
enum class Verify : int { Off = 0, Sampled = 1, Full = 2, Auto = 3 };

/// Of a part of the memory, and of which chunks of it.
struct Checksum {
    std::uint64_t value = 0;    // on a GPU, its number there
    std::int32_t version = -1;  // of the storage; -1: none has been taken
    std::uint16_t every = 1;    // one chunk in so many is read
    std::uint16_t phase = 0;    // which of them

    bool taken() const { return version >= 0; }
};

/// The op leaves some bytes of its results as its memory had them: two runs may differ there, and
/// nothing reads them.
bool leavesBytesUndefined(const std::string& op);
/// Under a dispatch mode of Python's that may change what an op makes, and what it makes is not
/// compared (`undefined`).
inline bool isUncheckable(const profiler::native::Passing& op, bool undefined) {
    return undefined && op.below.has(c10::DispatchKey::Python) && !profiler::native::isChecked();
}
/// Whether the op sets each element of what it writes, whatever was there: fills, copies, and
/// results that go to a tensor that is given (`out=`).
bool writesWhole(const c10::FunctionSchema& schema);
/// The tensor looks at every byte of its storage, and its op has written them all.
bool coversStorage(const c10::TensorImpl& tensor);

class Verifier {
public:
    explicit Verifier(const profiler::native::AgentApi& agent, DeviceSums devices = DeviceSums())
        : agent_(agent), devices_(std::move(devices)) {}

    /// On which what is compared on GPUs is written.
    void watch(const Streams* streams) { streams_ = streams; }
    void setLevel(Verify level);
    bool on() const { return level_ != Verify::Off; }
    void beginStep();
    /// The step has ended: how much is read in the next one follows from what this one has cost.
    void endStep();

    /// Of all of a storage; none where it is off, or where none can be taken.
    Checksum of(const c10::StorageImpl& storage, std::int32_t version);
    /// Whether the storage has the bytes of which it was taken. On a GPU that is seen later.
    bool matches(const Checksum& checksum, const c10::StorageImpl& storage);

    /// Whether something was compared on a GPU and it has not been seen how, or not been said by
    /// which op it was recomputed.
    bool queued() const { return !queued_.empty(); }
    bool unattributed() const { return attributed_ < queued_.size(); }
    /// What has been queued since the last time was recomputed by that op.
    void attribute(const Mismatch& op);
    /// Waits for what is queued. None: all is the same.
    std::optional<Mismatch> settle();
    /// Why nothing is compared on GPUs any more; empty: it is.
    const std::string& whyNotOnGpus() const { return devices_.why(); }

    /// Of all of the bytes, whatever the level is: whether they change is to be seen.
    Checksum whole(const void* data, std::int64_t bytes) const;
    bool isSame(const Checksum& whole, const void* data, std::int64_t bytes) const;

    /// Of this step: bytes that were compared, and nanoseconds that checksums took.
    std::int64_t bytes() const { return bytes_; }
    std::int64_t nanoseconds() const { return nanoseconds_; }

private:
    std::uint64_t sum(const Checksum& which, const void* data, std::int64_t bytes);

    const profiler::native::AgentApi& agent_;
    DeviceSums devices_;
    const Streams* streams_ = nullptr;
    std::vector<Mismatch> queued_;  // comparisons on GPUs: what there is to say if they fail
    std::size_t attributed_ = 0;
    Verify level_ = Verify::Auto;
    std::uint16_t every_ = 1;
    std::uint16_t phase_ = 0;
    std::int64_t steps_ = 0;  // in which something was dropped
    std::int64_t began_ = 0;
    std::int64_t bytes_ = 0, nanoseconds_ = 0;
};

}  // namespace hw::live::runtime
