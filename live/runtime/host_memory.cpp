// SPDX-License-Identifier: MIT
#include "host_memory.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <thread>

namespace hw::live::runtime {
namespace {

constexpr std::int64_t kPage = 4096;

std::int64_t wholePages(std::size_t bytes) {
    return (static_cast<std::int64_t>(bytes) + kPage - 1) / kPage * kPage;
}

/// All of the bytes by one of the system's calls, which may take fewer at a time.
template <class Call>
bool moveAll(std::size_t bytes, const Call& call) {
    for (std::size_t done = 0; done < bytes;) {
        const ssize_t moved = call(done);
        if (moved < 0 && errno == EINTR) continue;
        if (moved <= 0) return false;
        done += static_cast<std::size_t>(moved);
    }
    return true;
}

}  // namespace

HostCopy::HostCopy(HostMemory& memory, StoragePointer source, std::int32_t version)
    : memory_(memory),
      source_(std::move(source)),
      allocator_(source_->allocator()),
      bytes_(source_->nbytes()),
      version_(version) {}

HostCopy::~HostCopy() {
    finish();
    if (place_ >= 0) memory_.giveBack(place_, bytes_);
}

bool HostCopy::finish() {
    if (source_) {
        std::unique_lock<std::mutex> lock(memory_.mutex_);
        memory_.done_.wait(lock, [this] { return done_ || memory_.forked_; });
        good_ = good_ && done_;
        lock.unlock();
        source_.reset();
    }
    return good_;
}

StoragePointer HostCopy::read() const {
    auto made = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes_,
                                                      allocator_->allocate(bytes_), allocator_,
                                                      /*resizable=*/true);
    const c10::DataPtr& data = static_cast<const c10::StorageImpl&>(*made).data_ptr();
    auto* const into = static_cast<char*>(data.get());
    const bool all = moveAll(bytes_, [&](std::size_t done) {
        return pread(memory_.file_, into + done, bytes_ - done,
                     place_ + static_cast<std::int64_t>(done));
    });
    return all ? made : StoragePointer();
}

HostMemory& HostMemory::ofProcess() {
    static auto* const memory = new HostMemory;
    return *memory;
}

std::unique_ptr<HostCopy> HostMemory::copyOut(StoragePointer source, std::int32_t version) {
    auto copy = std::make_unique<HostCopy>(*this, std::move(source), version);
    const std::lock_guard<std::mutex> lock(mutex_);
    copy->place_ = forked_ || !open() ? -1 : take(copy->bytes_);
    if (copy->place_ < 0) {
        copy->done_ = true;
        return copy;
    }
    if (!started_) {
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are the program's
        std::thread([this] { work(); }).detach();
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        started_ = true;
    }
    queue_.push_back(copy.get());
    came_.notify_one();
    return copy;
}

void HostMemory::settle() {
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [this] { return forked_ || (queue_.empty() && !working_); });
}

void HostMemory::forked() {
    forked_ = true;
}

/// Where the system keeps files on a disk, if it lets us; its name is gone at once.
bool HostMemory::open() {
    if (file_ >= 0) return true;
    const char* const wanted = std::getenv("TMPDIR");
    for (const char* const folder : {wanted, "/var/tmp", "/tmp"}) {
        if (folder == nullptr) continue;
        file_ = ::open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        if (file_ >= 0) return true;
    }
    return false;
}

std::int64_t HostMemory::take(std::size_t bytes) {
    const std::int64_t size = wholePages(bytes);
    const auto fits = std::find_if(free_.begin(), free_.end(),
                                   [&](const auto& each) { return each.second >= size; });
    if (fits == free_.end()) {
        end_ += size;
        return end_ - size;
    }
    const auto [place, all] = *fits;
    free_.erase(fits);
    if (all > size) free_[place + size] = all - size;
    return place;
}

void HostMemory::giveBack(std::int64_t place, std::size_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto at = free_.emplace(place, wholePages(bytes)).first;
    if (const auto next = std::next(at);
        next != free_.end() && at->first + at->second == next->first) {
        at->second += next->second;
        free_.erase(next);
    }
    if (at == free_.begin()) return;
    if (const auto before = std::prev(at); before->first + before->second == at->first) {
        before->second += at->second;
        free_.erase(at);
    }
}

void HostMemory::work() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
        came_.wait(lock, [this] { return !queue_.empty(); });
        HostCopy* const copy = queue_.front();
        queue_.pop_front();
        working_ = true;
        lock.unlock();
        const bool good = write(*copy);
        lock.lock();
        working_ = false;
        copy->good_ = good;
        copy->done_ = true;
        done_.notify_all();
    }
}

bool HostMemory::write(const HostCopy& copy) const {
    const c10::StorageImpl& source = *copy.source_;
    const auto* const from = static_cast<const char*>(source.data_ptr().get());
    return moveAll(copy.bytes_, [&](std::size_t done) {
        return pwrite(file_, from + done, copy.bytes_ - done,
                      copy.place_ + static_cast<std::int64_t>(done));
    });
}

}  // namespace hw::live::runtime
