// SPDX-License-Identifier: MIT
// The promise checks itself: what is dropped leaves a checksum, what is recomputed is compared.
#pragma once

#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include <cstdint>
#include <string>

#include "agent_api.h"

namespace hw::executor::live {

/// Null: there are none.
inline const char* bytesOf(const c10::StorageImpl& storage) {
    return static_cast<const char*>(storage.data_ptr().get());
}

/// Which bytes of what is dropped are compared. Auto: all as long as that takes at most 1 % of a
/// step, else the largest sample that does.
enum class Verify : int { Off = 0, Sampled = 1, Full = 2, Auto = 3 };

/// Of a part of the memory, and of which chunks of it.
struct Checksum {
    std::uint64_t value = 0;
    std::int32_t version = -1;  // of the storage; -1: none has been taken
    std::uint16_t every = 1;    // one chunk in so many is read
    std::uint16_t phase = 0;    // which of them

    bool taken() const { return version >= 0; }
};

/// The op leaves some bytes of its results as its memory had them: two runs may differ there, and
/// nothing reads them.
bool leavesBytesUndefined(const std::string& op);
/// The tensor looks at every byte of its storage.
bool coversStorage(const c10::TensorImpl& tensor);

class Verifier {
public:
    explicit Verifier(const profiler::native::AgentApi& agent) : agent_(agent) {}

    void setLevel(Verify level);
    bool on() const { return level_ != Verify::Off; }
    void beginStep();
    /// The step has ended: how much is read in the next one follows from what this one has cost.
    void endStep();

    /// Of all of a storage; none where it is off, or where the bytes are not the CPU's.
    Checksum of(const c10::StorageImpl& storage, std::int32_t version);
    /// Whether the storage has the bytes of which it was taken.
    bool matches(const Checksum& checksum, const c10::StorageImpl& storage);
    /// Of all of the bytes, whatever the level is: whether they change is to be seen.
    Checksum whole(const void* data, std::int64_t bytes) const;
    bool isSame(const Checksum& whole, const void* data, std::int64_t bytes) const;

    /// Of this step: bytes that were compared, and nanoseconds that checksums took.
    std::int64_t bytes() const { return bytes_; }
    std::int64_t nanoseconds() const { return nanoseconds_; }

private:
    std::uint64_t sum(const Checksum& which, const void* data, std::int64_t bytes);

    const profiler::native::AgentApi& agent_;
    Verify level_ = Verify::Auto;
    std::uint16_t every_ = 1;
    std::uint16_t phase_ = 0;
    std::int64_t steps_ = 0;  // in which something was dropped
    std::int64_t began_ = 0;
    std::int64_t bytes_ = 0, nanoseconds_ = 0;
};

}  // namespace hw::executor::live
