// SPDX-License-Identifier: MIT
// Where offloaded storages are: on a machine without a GPU, a file without a name, which the system
// keeps in memory that it can take back. One thread copies out while the program goes on.
#pragma once

#include <c10/core/Allocator.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>

#include "call.h"

namespace hw::live::runtime {

class HostMemory;

/// The bytes of one storage there. Its end waits for the copying.
class HostCopy {
public:
    HostCopy(HostMemory& memory, StoragePointer source, std::int32_t version);
    ~HostCopy();
    HostCopy(const HostCopy&) = delete;

    std::size_t bytes() const { return bytes_; }
    std::int32_t version() const { return version_; }  // of the storage
    /// The copy is through. False: it has failed, and what was copied must stay. The storage is not
    /// kept alive any longer.
    bool finish();
    /// As a storage of their own; null where they cannot be read.
    StoragePointer read() const;

private:
    friend class HostMemory;
    HostMemory& memory_;
    StoragePointer source_;
    c10::Allocator* allocator_;
    std::size_t bytes_;
    std::int32_t version_;
    std::int64_t place_ = -1;  // in the file; -1: there is none
    bool done_ = false, good_ = false;
};

class HostMemory {
public:
    /// The one of this process, which lasts as long as it.
    static HostMemory& ofProcess();

    /// Begins to copy the storage's bytes.
    std::unique_ptr<HostCopy> copyOut(StoragePointer source, std::int32_t version);
    /// Waits for all that has begun: before the process forks, since the child has no such thread.
    void settle();
    /// In the child: what the parent has there may be read, and no more comes.
    void forked();

private:
    friend class HostCopy;
    HostMemory() = default;
    bool open();
    std::int64_t take(std::size_t bytes);
    void giveBack(std::int64_t place, std::size_t bytes);
    void work();
    bool write(const HostCopy& copy) const;

    std::mutex mutex_;
    std::condition_variable came_, done_;
    std::deque<HostCopy*> queue_;
    bool working_ = false, started_ = false, forked_ = false;
    int file_ = -1;
    std::int64_t end_ = 0;                       // of the file
    std::map<std::int64_t, std::int64_t> free_;  // places in it, and how many bytes
};

}  // namespace hw::live::runtime
