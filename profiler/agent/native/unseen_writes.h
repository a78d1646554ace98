// SPDX-License-Identifier: MIT
// Bytes that code which calls no op may write: numpy, dlpack, shared memory, extensions. What ops
// read there leaves a checksum, so that a change is seen.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "agent_api.h"

namespace hw::profiler::native {

/// Its memory is not that of the framework's allocator: from_numpy(), shared memory, mapped files.
bool isForeign(const c10::StorageImpl& storage);
/// What the program has lent to a tensor it may have taken back, by munmap, with the tensor there.
bool isMapped(const void* data, std::int64_t bytes);
/// A leaf that wants a gradient: its bytes change by its optimizer's ops only.
bool isParameter(const c10::TensorImpl& tensor);
/// The op makes storages that it fills with the same or with random numbers, or not at all: other
/// code often fills them after it.
bool onlyFills(const std::string& op);
/// A checksum of all of them.
std::uint64_t sumOf(const AgentApi& agent, const void* data, std::int64_t bytes);

/// A part of a storage: what a tensor looks at, from its first byte to its last.
struct Part {
    std::int64_t from = 0, bytes = 0;
};
Part partOf(const c10::TensorImpl& tensor);

/// What a recording sees of such writes, step by step.
class UnseenWrites {
public:
    explicit UnseenWrites(const AgentApi& agent) : agent_(agent) {}

    void begin();
    /// An op that only fills has made the storage, which the session calls `id`.
    void made(std::int64_t id, const c10::StorageImpl& storage);
    /// An op reads a tensor; no op has written the storage since it was made, if `asMade`. `given`:
    /// it was there before the step, and is no parameter, gradient or optimizer state.
    void read(std::int64_t id, const at::Tensor& tensor, bool asMade, bool given);
    /// An op has written the storage: what was read before proves nothing.
    void forgetReads(const c10::StorageImpl* storage);
    /// The step has ended. JSON: storages of the session that were written since an op had made
    /// them, and whether other memory and what was given kept its bytes from each op that read it
    /// to the step's end.
    std::string end();

private:
    static constexpr std::size_t kMostSeen = 4096;  // reads of a step

    struct Seen {
        c10::weak_intrusive_ptr<c10::StorageImpl> storage;
        Part part;
        std::uint64_t sum;
        bool mayGo;  // the program may release it: after that only a plan has it, and it stays as
                     // it is
    };

    const AgentApi& agent_;
    std::unordered_map<std::int64_t, std::uint64_t> made_;     // sums, by the storage's id
    std::unordered_map<std::int64_t, std::uint64_t> earlier_;  // of the step before, unread in it
    std::vector<std::int64_t> written_;
    std::vector<Seen> seen_;
    bool stable_ = true;
};

}  // namespace hw::profiler::native
