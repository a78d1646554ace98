// SPDX-License-Identifier: MIT
#include "profiler/agent/channel.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace hw::profiler::agent {
namespace {

constexpr std::size_t kQueueBytes = 64u << 20;  // reserved, touched as needed
constexpr int kStallMilliseconds = 10000;
constexpr int kWriterMilliseconds = 100;
constexpr timespec kGathering{0, 1000000};
constexpr std::size_t kWriteBytes = 256u << 10;

std::atomic<int> gSocket{-1};
std::atomic<bool> gBroken{true};
pthread_mutex_t gLock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t gFilled = PTHREAD_COND_INITIALIZER;
pthread_cond_t gDrained = PTHREAD_COND_INITIALIZER;
unsigned char* gRing = nullptr;
std::size_t gHead = 0;  // next byte to write out
std::size_t gCount = 0;
bool gWriterRuns = false;
std::atomic<bool> gAnswered{false};  // a Native frame has come on this connection
pthread_mutex_t gReading = PTHREAD_MUTEX_INITIALIZER;
int gFlushes = 0;  // that wait for the queue to be empty

timespec deadlineIn(int milliseconds) {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    now.tv_sec += milliseconds / 1000;
    now.tv_nsec += static_cast<long>(milliseconds % 1000) * 1000000;
    if (now.tv_nsec >= 1000000000) {
        now.tv_nsec -= 1000000000;
        ++now.tv_sec;
    }
    return now;
}

void append(const void* data, std::size_t bytes) {
    const auto* source = static_cast<const unsigned char*>(data);
    while (bytes > 0) {
        const std::size_t tail = (gHead + gCount) % kQueueBytes;
        std::size_t run = kQueueBytes - tail;
        if (run > bytes) run = bytes;
        memcpy(gRing + tail, source, run);
        source += run;
        gCount += run;
        bytes -= run;
    }
}

bool writeAll(const unsigned char* data, std::size_t bytes) {
    while (bytes > 0) {
        const ssize_t written = send(gSocket.load(), data, bytes, MSG_NOSIGNAL);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        data += written;
        bytes -= static_cast<std::size_t>(written);
    }
    return true;
}

void* writerMain(void*) {
    pthread_mutex_lock(&gLock);
    for (;;) {
        while (gCount == 0 && !gBroken.load()) pthread_cond_wait(&gFilled, &gLock);
        if (gBroken.load()) break;
        if (gCount < kWriteBytes && gFlushes == 0) {
            // More is about to come: a wake-up for every frame would cost more than the frame.
            pthread_mutex_unlock(&gLock);
            nanosleep(&kGathering, nullptr);
            pthread_mutex_lock(&gLock);
            if (gBroken.load()) break;
        }
        std::size_t run = kQueueBytes - gHead;
        if (run > gCount) run = gCount;
        if (run > kWriteBytes) run = kWriteBytes;
        const unsigned char* data = gRing + gHead;
        pthread_mutex_unlock(&gLock);
        const bool written = writeAll(data, run);
        pthread_mutex_lock(&gLock);
        if (!written) {
            gBroken.store(true);
            break;
        }
        gHead = (gHead + run) % kQueueBytes;
        gCount -= run;
        pthread_cond_broadcast(&gDrained);
    }
    gWriterRuns = false;
    pthread_cond_broadcast(&gDrained);
    pthread_mutex_unlock(&gLock);
    return nullptr;
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
    if (gRing == nullptr) {
        void* memory = mmap(nullptr, kQueueBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) {
            close(fd);
            return false;
        }
        gRing = static_cast<unsigned char*>(memory);
    }
    pthread_mutex_lock(&gLock);
    // A writer of an earlier connection ends at once: its channel is broken.
    const timespec deadline = deadlineIn(kWriterMilliseconds);
    while (gWriterRuns && pthread_cond_timedwait(&gDrained, &gLock, &deadline) != ETIMEDOUT) {
    }
    const int before = gSocket.load();
    if (before >= 0) close(before);
    gHead = gCount = 0;
    gSocket.store(fd);
    gBroken.store(false);
    gAnswered.store(false);
    pthread_mutex_unlock(&gLock);
    const std::int64_t pid = getpid();
    return sendFrame(wire::Type::Hello, &pid, sizeof(pid), nullptr, 0, false) == Sent::Queued;
}

bool receiveConfig(Config& config, int timeoutMilliseconds) {
    Header header{};
    if (readAll(&header, sizeof(header), timeoutMilliseconds) && header.magic == wire::kMagic &&
        header.version == wire::kVersion &&
        header.type == static_cast<std::uint16_t>(wire::Type::Config) &&
        header.length == sizeof(Config) && readAll(&config, sizeof(config), timeoutMilliseconds))
        return true;
    gBroken.store(true);
    return false;
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

bool startWriter() {
    pthread_mutex_lock(&gLock);
    const bool running = gWriterRuns;
    gWriterRuns = true;
    pthread_mutex_unlock(&gLock);
    if (running) return true;
    const bool started = startDetachedThread(&writerMain);
    if (!started) gBroken.store(true);
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
    while (gCount + total > kQueueBytes && !gBroken.load()) {
        if (!wait) {
            pthread_mutex_unlock(&gLock);
            return Sent::Full;
        }
        const timespec deadline = deadlineIn(kStallMilliseconds);
        if (pthread_cond_timedwait(&gDrained, &gLock, &deadline) == ETIMEDOUT) gBroken.store(true);
    }
    const bool broken = gBroken.load();
    const bool wasEmpty = gCount == 0;
    if (!broken) {
        for (const Part& part : parts) append(part.data, part.bytes);
        if (wasEmpty) pthread_cond_signal(&gFilled);
    }
    pthread_mutex_unlock(&gLock);
    return broken ? Sent::Broken : Sent::Queued;
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

bool flushChannel(int timeoutMilliseconds) {
    if (gBroken.load()) return false;
    const timespec deadline = deadlineIn(timeoutMilliseconds);
    pthread_mutex_lock(&gLock);
    int status = 0;
    ++gFlushes;
    while (gCount > 0 && !gBroken.load() && status == 0)
        status = pthread_cond_timedwait(&gDrained, &gLock, &deadline);
    --gFlushes;
    const bool empty = gCount == 0;
    pthread_mutex_unlock(&gLock);
    return empty;
}

namespace {

enum class Read { Nothing, Answer, End };

/// The one answer that may come after the configuration; anything else is the end. Two threads may
/// wait: whoever comes first reads.
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
        }
    }
    pthread_mutex_unlock(&gReading);
    return read;
}

}  // namespace

void awaitNative(Config& config, int timeoutMilliseconds) {
    constexpr int kPause = 20;
    for (int waited = 0; waited < timeoutMilliseconds && !gAnswered.load() && !gBroken.load();
         waited += kPause)
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
    pthread_mutex_lock(&gLock);
    gBroken.store(true);
    pthread_cond_broadcast(&gFilled);
    pthread_mutex_unlock(&gLock);
    const int fd = gSocket.load();
    if (fd >= 0) shutdown(fd, SHUT_RDWR);
}

void abandonChannel() {
    gBroken.store(true);
    const int fd = gSocket.exchange(-1);
    if (fd >= 0) close(fd);
}

}  // namespace hw::profiler::agent
