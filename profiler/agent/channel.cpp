// SPDX-License-Identifier: MIT
#include "profiler/agent/channel.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "profiler/agent/interpreter.h"
#include "profiler/wire/ring.h"

namespace hw::profiler::agent {
namespace {

constexpr int kStallMilliseconds = 10000;
constexpr timespec kWaiting{0, 1000000};

std::atomic<int> gSocket{-1};
std::atomic<bool> gBroken{true};
pthread_mutex_t gLock = PTHREAD_MUTEX_INITIALIZER;  // of those who write into the ring
wire::RingHead* gRing = nullptr;
std::atomic<bool> gAnswered{false};  // a Native frame has come on this connection
pthread_mutex_t gReading = PTHREAD_MUTEX_INITIALIZER;

/// A forked child does not get the mapping: what it does is no part of the recording.
bool mapRing(int file) {
    const std::size_t bytes = wire::kRingHeadBytes + wire::kRingBytes;
    struct stat about {};
    // One that could not be made as large, as under a limit on file sizes: to write there would end
    // the program by a bus error.
    if (fstat(file, &about) != 0 || about.st_size < static_cast<off_t>(bytes)) return false;
    // Its pages are made here rather than by the training as it writes.
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    if (memory == MAP_FAILED) return false;
    madvise(memory, bytes, MADV_DONTFORK);
    pthread_mutex_lock(&gLock);
    if (gRing != nullptr) munmap(gRing, bytes);
    gRing = static_cast<wire::RingHead*>(memory);
    pthread_mutex_unlock(&gLock);
    return true;
}

std::size_t room() {
    return wire::kRingBytes - (gRing->written.load(std::memory_order_relaxed) -
                               gRing->taken.load(std::memory_order_acquire));
}

/// Waits for room as long as the recorder reads on.
bool waitForRoom() {
    for (int waited = 0; room() == 0; ++waited) {
        if (gBroken.load() || waited > kStallMilliseconds) return false;
        nanosleep(&kWaiting, nullptr);
    }
    return true;
}

/// False: the channel is broken, or breaks here; the recorder drops the half of a frame.
bool append(const void* data, std::size_t bytes) {
    const auto* source = static_cast<const unsigned char*>(data);
    auto* const ring = reinterpret_cast<unsigned char*>(gRing) + wire::kRingHeadBytes;
    while (bytes > 0) {
        if (!waitForRoom()) return false;
        const std::uint64_t written = gRing->written.load(std::memory_order_relaxed);
        const std::size_t tail = written % wire::kRingBytes;
        std::size_t run = room();
        if (run > wire::kRingBytes - tail) run = wire::kRingBytes - tail;
        if (run > bytes) run = bytes;
        memcpy(ring + tail, source, run);
        source += run;
        bytes -= run;
        gRing->written.store(written + run, std::memory_order_release);
    }
    return true;
}

/// The first bytes of the recorder's answer, and the file that comes with them.
bool readWithFile(void* data, std::size_t bytes, int& file, int timeoutMilliseconds) {
    pollfd waiting{gSocket.load(), POLLIN, 0};
    while (poll(&waiting, 1, timeoutMilliseconds) < 0)
        if (errno != EINTR) return false;
    iovec part{data, bytes};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t got = recvmsg(gSocket.load(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    const cmsghdr* with = got > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
    if (with == nullptr || with->cmsg_type != SCM_RIGHTS) return false;
    memcpy(&file, CMSG_DATA(with), sizeof(file));
    return got == static_cast<ssize_t>(bytes);
}

bool readAll(void* data, std::size_t bytes, int timeoutMilliseconds) {
    auto* target = static_cast<unsigned char*>(data);
    while (bytes > 0) {
        pollfd waiting{gSocket.load(), POLLIN, 0};
        const int ready = poll(&waiting, 1, timeoutMilliseconds);
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) return false;
        const ssize_t got = recv(gSocket.load(), target, bytes, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        target += got;
        bytes -= static_cast<std::size_t>(got);
    }
    return true;
}

struct Header {
    std::uint32_t magic;
    std::uint16_t version;
    std::uint16_t type;
    std::uint32_t length;
};
static_assert(sizeof(Header) == wire::kHeaderBytes);

}  // namespace

bool openChannel(const char* socketPath) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (strlen(socketPath) >= sizeof(address.sun_path)) return false;
    strcpy(address.sun_path, socketPath);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return false;
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
        close(fd);
        return false;
    }
    const int before = gSocket.exchange(fd);
    if (before >= 0) close(before);
    gAnswered.store(false);
    return true;
}

bool receiveConfig(Config& config, int timeoutMilliseconds) {
    Header header{};
    int file = -1;
    const bool received = readWithFile(&header, sizeof(header), file, timeoutMilliseconds) &&
                          header.magic == wire::kMagic && header.version == wire::kVersion &&
                          header.type == static_cast<std::uint16_t>(wire::Type::Config) &&
                          header.length == sizeof(Config) &&
                          readAll(&config, sizeof(config), timeoutMilliseconds) && mapRing(file);
    if (file >= 0) close(file);
    if (!received) return false;
    gBroken.store(false);
    const std::int64_t pid = getpid();
    return sendFrame(wire::Type::Hello, &pid, sizeof(pid), nullptr, 0, false) == Sent::Queued;
}

bool startDetachedThread(void* (*body)(void*)) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    const bool started = pthread_create(&thread, &attributes, body, nullptr) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_attr_destroy(&attributes);
    return started;
}

namespace {

struct Part {
    const void* data;
    std::size_t bytes;
};

template <std::size_t count>
Sent queue(const Part (&parts)[count], bool wait) {
    if (gBroken.load()) return Sent::Broken;
    std::size_t total = 0;
    for (const Part& part : parts) total += part.bytes;
    pthread_mutex_lock(&gLock);
    if (!wait && total > room()) {
        pthread_mutex_unlock(&gLock);
        return Sent::Full;
    }
    for (const Part& part : parts)
        if (!gBroken.load() && !append(part.data, part.bytes)) gBroken.store(true);
    pthread_mutex_unlock(&gLock);
    return gBroken.load() ? Sent::Broken : Sent::Queued;
}

}  // namespace

Sent sendFrame(wire::Type type, const void* first, std::size_t firstBytes, const void* second,
               std::size_t secondBytes, bool wait) {
    const std::size_t payload = firstBytes + secondBytes;
    if (payload > wire::kMaxPayload) return Sent::Broken;
    const Header header{wire::kMagic, wire::kVersion, static_cast<std::uint16_t>(type),
                        static_cast<std::uint32_t>(payload)};
    return queue({{&header, sizeof(header)}, {first, firstBytes}, {second, secondBytes}}, wait);
}

Sent sendFrames(const void* data, std::size_t bytes) {
    return queue({{data, bytes}}, true);
}

namespace {

enum class Read { Nothing, Answer, End };

/// The one answer that may come after the configuration; anything else is the end. Two threads may
/// wait: the first reader gets it.
Read readAnswer(Config& config, int milliseconds) {
    pollfd waiting{gSocket.load(), POLLIN, 0};
    const int ready = poll(&waiting, 1, milliseconds);
    if (ready == 0 || (ready < 0 && errno == EINTR)) return Read::Nothing;
    if (ready < 0) return Read::End;
    pthread_mutex_lock(&gReading);
    Read read = Read::Nothing;
    if (poll(&waiting, 1, 0) > 0) {
        Header header{};
        static char path[wire::kPathBytes];
        const bool taken =
            !gAnswered.load() && readAll(&header, sizeof(header), kStallMilliseconds) &&
            header.magic == wire::kMagic &&
            header.type == static_cast<std::uint16_t>(wire::Type::Native) &&
            header.length == sizeof(path) && readAll(path, sizeof(path), kStallMilliseconds);
        read = taken ? Read::Answer : Read::End;
        if (taken) {
            memcpy(config.nativeCapture, path, sizeof(path));
            gAnswered.store(true);
        } else if ((waiting.revents & POLLHUP) != 0) {
            gBroken.store(true);  // it is gone
        }
    }
    pthread_mutex_unlock(&gReading);
    return read;
}

}  // namespace

void awaitNative(Config& config, int timeoutMilliseconds) {
    constexpr int kPause = 20;
    const auto waits = [] { return !gAnswered.load() && !gBroken.load() && !interpreterEnds(); };
    for (int waited = 0; waited < timeoutMilliseconds && waits(); waited += kPause)
        if (readAnswer(config, kPause) == Read::End) return;
}

void waitForHangup(Config& config) {
    while (!gBroken.load())
        if (readAnswer(config, -1) == Read::End) return;
}

bool channelBroken() {
    return gBroken.load();
}

void closeChannel() {
    gBroken.store(true);
    const int fd = gSocket.load();
    if (fd >= 0) shutdown(fd, SHUT_RDWR);
}

void abandonChannel() {
    gBroken.store(true);
    gRing = nullptr;  // fork() has left it with the parent
    const int fd = gSocket.exchange(-1);
    if (fd >= 0) close(fd);
}

}  // namespace hw::profiler::agent
