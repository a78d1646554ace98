// SPDX-License-Identifier: MIT
#include "profiler/recorder/backlog.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "core/base/file.h"

namespace hw::profiler {
namespace {

constexpr std::size_t kPartBytes = 256u << 10;
constexpr std::chrono::milliseconds kLook{5};  // the ring takes some 100 to fill

}  // namespace

Backlog::Backlog(std::string folder, std::size_t mostInMemory)
    : folder_(std::move(folder)), mostInMemory_(mostInMemory) {}

Backlog::~Backlog() {
    {
        const std::lock_guard guard(mutex_);
        stopping_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
    if (file_ >= 0) close(file_);
}

void Backlog::start() {
    thread_ = std::thread([this] { work(); });
}

void Backlog::work() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
        if (ended_) {
            ring_.skip();
        } else if (moveOnce()) {
            lock.unlock();  // the recorder may want to take
            lock.lock();
            continue;
        }
        wake_.wait_for(lock, kLook);
    }
}

bool Backlog::moveOnce() {
    return ring_.take([this](std::span<const std::byte> bytes) { return add(bytes); });
}

/// At the end, there is room for what the ring holds.
bool Backlog::add(std::span<const std::byte> bytes) {
    const bool toFile = inFile_ > 0 || inMemory_ + bytes.size() > mostInMemory_;
    if (toFile && addToFile(bytes)) return true;
    if (toFile && !ended_) return false;
    if (parts_.empty() || parts_.back().bytes.empty() ||
        parts_.back().bytes.size() + bytes.size() > kPartBytes)
        parts_.emplace_back();
    Part& part = parts_.back();
    part.bytes.insert(part.bytes.end(), bytes.begin(), bytes.end());
    part.size = part.bytes.size();
    inMemory_ += bytes.size();
    return true;
}

bool Backlog::openFile() {
    if (file_ >= 0 || noFile_) return file_ >= 0;
    std::error_code ignored;
    const std::string other = core::temporaryFolder().string();
    for (const std::string& folder : {folder_, other})  // not all have files without a name
        if (file_ < 0) file_ = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    noFile_ = file_ < 0;
    return file_ >= 0;
}

bool Backlog::addToFile(std::span<const std::byte> bytes) {
    if (!openFile()) return false;
    if (pwrite(file_, bytes.data(), bytes.size(), fileEnd_) != static_cast<ssize_t>(bytes.size()))
        return false;  // the disk is full: what was written of it will be written over
    parts_.push_back({{}, fileEnd_, bytes.size()});
    fileEnd_ += static_cast<std::int64_t>(bytes.size());
    inFile_ += bytes.size();
    return true;
}

std::vector<std::byte> Backlog::read(const Part& part) {
    std::vector<std::byte> bytes(part.size);
    // What cannot be read is no frame, which ends the stream with a word.
    if (pread(file_, bytes.data(), bytes.size(), part.offset) != static_cast<ssize_t>(bytes.size()))
        std::fill(bytes.begin(), bytes.end(), std::byte{0});
    inFile_ -= part.size;
    if (inFile_ == 0) {
        fileEnd_ = 0;
        if (ftruncate(file_, 0) != 0) return bytes;  // it is only written over
    } else {
        fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, part.offset,
                  static_cast<off_t>(part.size));
    }
    return bytes;
}

bool Backlog::take(wire::FrameReader& reader) {
    Part part;
    {
        const std::lock_guard guard(mutex_);
        if (parts_.empty()) return false;
        part = std::move(parts_.front());
        parts_.pop_front();
        if (part.bytes.empty())
            part.bytes = read(part);
        else
            inMemory_ -= part.size;
    }
    reader.feed(part.bytes);
    return true;
}

void Backlog::end() {
    const std::lock_guard guard(mutex_);
    if (std::exchange(ended_, true)) return;
    while (moveOnce()) {
    }
}

bool Backlog::isEmpty() const {
    const std::lock_guard guard(mutex_);
    return parts_.empty();
}

}  // namespace hw::profiler
