// SPDX-License-Identifier: MIT
// What lives inside the training process. Loaded with LD_PRELOAD (the constructor starts it) or by
// an injector (agent_attach). It never raises into the program: whatever fails, it gives up and
// stays quiet.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "profiler/agent/allocations.h"
#include "profiler/agent/channel.h"
#include "profiler/agent/embedded.h"
#include "profiler/agent/gpu.h"
#include "profiler/agent/interpreter.h"
#include "profiler/wire/format.h"

namespace hw::profiler::agent {

Config gConfig;

namespace {

constexpr int kConfigMilliseconds = 10000;
constexpr long kPollNanoseconds = 200000;

std::atomic<bool> gStarting{false};  // the agent's thread runs
char gSocketPath[128];

struct Scratch {
    std::uint64_t address = 0;
    std::atomic<std::uint64_t> bytes{0};
};
Scratch gScratch[4];

/// The shim finds this library again by its own path, so that ctypes gets the same copy.
bool bootShim() {
    Dl_info self{};
    if (dladdr(reinterpret_cast<void*>(&bootShim), &self) == 0) return false;
    // The path goes into a Python literal: hexadecimal needs no quoting.
    static char script[16384];
    int used = snprintf(script, sizeof(script),
                        "exec(\"\"\"try:\n import ctypes as c\n"
                        " l=c.PyDLL(bytes.fromhex('");
    for (const char* p = self.dli_fname; *p != '\0' && used < 12000; ++p)
        used += snprintf(script + used, sizeof(script) - static_cast<std::size_t>(used), "%02x",
                         static_cast<unsigned char>(*p));
    snprintf(script + used, sizeof(script) - static_cast<std::size_t>(used),
             "').decode('utf-8','surrogateescape'))\n"
             " l.hw_shim_source.restype=c.c_char_p\n"
             " exec(compile(l.hw_shim_source(0),'<highwater boot>','exec'),"
             "{'__name__':'_highwater.boot','library':l})\n"
             "except BaseException as e:\n"
             " try:\n"
             "  t=repr(e).encode()\n"
             "  l.hw_fault(t,len(t))\n"
             " except BaseException: pass\n\"\"\",{})\n");
    return stay(script);
}

/// The recorder has hung up, or is gone: the shim takes its hooks out at the next chance.
void stopShim() {
    stay(
        "exec(\"\"\"try:\n import sys\n m=sys.modules.get('_highwater')\n"
        " if m is not None: m.install.stop()\n"
        "except BaseException: pass\n\"\"\",{})\n");
}

/// What the injector mapped to talk to us; the command in it has long been read by now.
void unmapScratch() {
    for (Scratch& scratch : gScratch) {
        const std::uint64_t bytes = scratch.bytes.exchange(0);
        if (bytes > 0) munmap(reinterpret_cast<void*>(scratch.address), bytes);
    }
}

/// Runs with all signals blocked. The interpreter may still be starting up; PyGILState_Ensure then
/// waits until its main thread lets go of the lock for the first time.
void* watchProgram(void*) {
    bool booted = false;
    if (findPython()) {
        const timespec pause{0, kPollNanoseconds};
        while (!pythonInitialized()) nanosleep(&pause, nullptr);
        booted = bootShim();
    }
    if (booted) {
        waitForHangup(gConfig);
        stopShim();
        unmapScratch();
    } else {
        closeChannel();
    }
    gStarting.store(false);
    return nullptr;
}

void* awaitConfig(void*) {
    if (receiveConfig(gConfig, kConfigMilliseconds)) return watchProgram(nullptr);
    closeChannel();
    gStarting.store(false);
    return nullptr;
}

void onForkInChild() {
    disableCounting();
    abandonGpu();
    abandonChannel();
    forgetStays();
    gStarting.store(false);
}

}  // namespace

/// How the recorder's configuration is waited for.
enum class Wait {
    Here,    // the program has not begun yet, and could train before a busy recorder answers
    Thread,  // the caller has the interpreter's lock
};

/// 0: started, or running with this very socket. 1: it is running with another. -1: the recorder
/// cannot be reached. Called again after a recording has ended, it starts a new one.
int start(const char* socketPath, Wait wait) {
    if (gStarting.exchange(true)) return strcmp(socketPath, gSocketPath) == 0 ? 0 : 1;
    static std::atomic<bool> forkWatched{false};
    if (!forkWatched.exchange(true)) pthread_atfork(nullptr, nullptr, &onForkInChild);
    if (strlen(socketPath) < sizeof(gSocketPath)) {
        strcpy(gSocketPath, socketPath);
        const bool here = wait == Wait::Here;
        if (openChannel(socketPath) && (!here || receiveConfig(gConfig, kConfigMilliseconds)) &&
            startDetachedThread(here ? &watchProgram : &awaitConfig))
            return 0;
    }
    closeChannel();
    gStarting.store(false);
    return -1;
}

/// start() for an injector, which has mapped `bytes` at `scratch` and leaves them to us.
int attach(const char* socketPath, std::uint64_t scratch, std::uint64_t bytes) {
    const int started = start(socketPath, Wait::Thread);
    for (Scratch& slot : gScratch) {
        if (started != 0 || slot.bytes.load() != 0) continue;
        slot.address = scratch;
        slot.bytes.store(bytes);
        break;
    }
    return started;
}

namespace {

bool endsWith(const char* text, const char* end) {
    const std::size_t length = strlen(text), of = strlen(end);
    return length >= of && strcmp(text + length - of, end) == 0 &&
           (length == of || text[length - of - 1] == '/');
}

/// Whether this process only starts others that train: torchrun and its like are Python and import
/// torch, but what they start is what was meant. Looks at the script, or the module after -m.
bool isLauncher() {
    static char line[4096];
    const int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    const ssize_t length = read(file, line, sizeof(line) - 1);
    close(file);
    if (length <= 0) return false;
    const char* const end = line + length;
    line[length] = '\0';
    const auto next = [&](const char* word) { return word + strlen(word) + 1; };
    for (const char* word = next(line); word < end; word = next(word)) {
        if (word[0] != '-') {
            return endsWith(word, "torchrun") || endsWith(word, "accelerate") ||
                   endsWith(word, "deepspeed");
        }
        if (strcmp(word, "-c") == 0) return false;
        if (strcmp(word, "-m") == 0) {
            const char* module = next(word);
            return module < end && (strcmp(module, "torch.distributed.run") == 0 ||
                                    strcmp(module, "torch.distributed.launch") == 0 ||
                                    strcmp(module, "accelerate.commands.launch") == 0);
        }
        if (strcmp(word, "-X") == 0 || strcmp(word, "-W") == 0) word = next(word);
    }
    return false;
}

/// In a program that is not Python (a shell, env), or a launcher, nothing happens. The variables
/// stay for its children until it imports torch (shim/launching.py).
__attribute__((constructor)) void onLoad() {
    const char* socketPath = getenv(wire::kSocketVariable);
    if (socketPath == nullptr || !findPython() || isLauncher()) return;
    watchBegin();
    start(socketPath, Wait::Here);
}

}  // namespace
}  // namespace hw::profiler::agent
