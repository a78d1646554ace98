// SPDX-License-Identifier: MIT
// The lock of what acts on a program's ops. It is taken several times an op and almost always free.
#pragma once

#include <pthread.h>
#include <unistd.h>

#include <c10/core/StorageImpl.h>

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

namespace hw::live::runtime {

/// Recursive. Who has to wait sleeps in between: the holder may be running ops again.
class OpLock {
public:
    void lock() {
        const pthread_t self = pthread_self();
        if (holder_.load(std::memory_order_relaxed) != self) {
            for (int tries = 0; taken_.test_and_set(std::memory_order_acquire); ++tries)
                tries < kYields ? std::this_thread::yield() : static_cast<void>(usleep(kSleepUs));
            holder_.store(self, std::memory_order_relaxed);
        }
        ++depth_;
    }
    /// False where another thread has it.
    bool try_lock() {
        const pthread_t self = pthread_self();
        if (holder_.load(std::memory_order_relaxed) != self) {
            if (taken_.test_and_set(std::memory_order_acquire)) return false;
            holder_.store(self, std::memory_order_relaxed);
        }
        ++depth_;
        return true;
    }
    void unlock() {
        if (--depth_ > 0) return;
        std::vector<c10::intrusive_ptr<c10::StorageImpl>> dead;
        if (!dead_.empty()) dead.swap(dead_);
        holder_.store(0, std::memory_order_relaxed);
        taken_.clear(std::memory_order_release);
    }
    /// The reference ends once the lock is free: the end of memory that is not the framework's may
    /// wait for Python's lock, whose holder may wait for this one.
    void bury(c10::intrusive_ptr<c10::StorageImpl> storage) { dead_.push_back(std::move(storage)); }

private:
    static constexpr int kYields = 64;
    static constexpr unsigned kSleepUs = 50;

    std::atomic_flag taken_ = ATOMIC_FLAG_INIT;
    std::atomic<pthread_t> holder_{0};
    int depth_ = 0;  // of the holder
    std::vector<c10::intrusive_ptr<c10::StorageImpl>> dead_;
};

}  // namespace hw::live::runtime
