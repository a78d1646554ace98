// SPDX-License-Identifier: MIT
#include "profiler/attach/inject.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "profiler/attach/elf_symbols.h"
#include "profiler/attach/process.h"

namespace hw::profiler {
namespace {

constexpr std::uint64_t kScratchBytes = 64 << 10;
constexpr auto kCallLimit = std::chrono::milliseconds(200);
constexpr auto kLoadLimit = std::chrono::milliseconds(5000);
constexpr long kSleepingCalls[] = {
    SYS_nanosleep, SYS_clock_nanosleep, SYS_poll,  SYS_ppoll,      SYS_select,
    SYS_pselect6,  SYS_pause,           SYS_wait4, SYS_epoll_wait, SYS_epoll_pwait,
    SYS_accept,    SYS_accept4,         SYS_futex, SYS_read};

std::string hexadecimal(const std::string& text) {
    std::string digits;
    for (const char c : text) {
        char pair[3];
        std::snprintf(pair, sizeof(pair), "%02x", static_cast<unsigned char>(c));
        digits += pair;
    }
    return digits;
}

core::Result<std::uint64_t> mapScratch(Tracee& tracee, const Entries& entries) {
    const auto at = tracee.call(
        entries.mmap,
        {0, kScratchBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, ~0ull, 0},
        kCallLimit);
    if (at && *at == ~0ull)
        return core::Error{core::ErrorCode::Target, "the process has no memory left to map",
                           "start it with 'highwater record -- …' instead"};
    return at;
}

}  // namespace

Injector::Injector(pid_t pid, const Entries& entries, std::string agentPath, std::string socketPath,
                   std::string errorFile)
    : pid_(pid),
      entries_(entries),
      agentPath_(std::move(agentPath)),
      socketPath_(std::move(socketPath)),
      errorFile_(std::move(errorFile)) {}

// Nothing may be raised into the program: an exception in a pending call ends the training. Paths
// travel as hexadecimal digits, which need no quoting.
std::string Injector::startCommand(std::uint64_t scratch) const {
    const std::string path = "').decode('utf-8','surrogateescape')";
    return "exec(\"\"\"try:\n"
           " import ctypes as c\n"
           " l=c.PyDLL(bytes.fromhex('" +
           hexadecimal(agentPath_) + path +
           ")\n"
           " l.hw_watch_end()\n"
           " l.agent_attach.argtypes=(c.c_char_p,c.c_uint64,c.c_uint64)\n"
           " r=l.agent_attach(bytes.fromhex('" +
           hexadecimal(socketPath_) + "')," + std::to_string(scratch) + "," +
           std::to_string(kScratchBytes) +
           ")\n"
           " if r>0: raise RuntimeError('it is being recorded already')\n"
           "except BaseException as e:\n"
           " try:\n"
           "  with open(bytes.fromhex('" +
           hexadecimal(errorFile_) +
           "'),'w') as f: f.write(str(e) or repr(e))\n"
           " except BaseException: pass\n\"\"\",{})\n";
}

void Injector::resume(Tracee& tracee) {
    longestStop_ = std::max(longestStop_, tracee.resume());
}

core::Status Injector::post() {
    auto tracee = Tracee::stop(pid_, entries_.path);
    if (!tracee) return tracee.error();
    const auto scratch = mapScratch(*tracee, entries_);
    if (!scratch) return scratch.error();
    if (const core::Status written = tracee->write(*scratch, startCommand(*scratch)); !written)
        return written.error();
    const auto queued =
        tracee->call(entries_.addPendingCall, {entries_.runSimpleString, *scratch}, kCallLimit);
    resume(*tracee);
    if (!queued) return queued.error();
    if (*queued != 0)
        return core::Error{core::ErrorCode::Target,
                           "the interpreter has too many pending calls to take another",
                           "try again in a moment"};
    return {};
}

bool Injector::waitsForLock() const {
    return systemCallOf(pid_) == SYS_futex;
}

core::Status Injector::wake() {
    auto tracee = Tracee::stop(pid_, entries_.path);
    if (!tracee) return tracee.error();
    if (tracee->inInterruptedCall()) tracee->endInterruptedCall();
    resume(*tracee);
    return {};
}

bool Injector::sleeps() const {
    const auto call = systemCallOf(pid_);
    return call && std::find(std::begin(kSleepingCalls), std::end(kSleepingCalls), *call) !=
                       std::end(kSleepingCalls);
}

core::Status Injector::loadWhileAsleep() {
    auto tracee = Tracee::stop(pid_, entries_.path);
    if (!tracee) return tracee.error();
    // It may have gone on meanwhile: then it is anywhere, its heap perhaps half changed.
    if (!tracee->inInterruptedCall() || entries_.dlopen == 0) return {};
    const auto scratch = mapScratch(*tracee, entries_);
    if (!scratch) return scratch.error();
    const std::uint64_t socket = *scratch + kScratchBytes / 2;
    if (const core::Status w = tracee->write(*scratch, agentPath_ + '\0'); !w) return w.error();
    if (const core::Status w = tracee->write(socket, socketPath_ + '\0'); !w) return w.error();
    const auto loaded =
        tracee->call(entries_.dlopen, {*scratch, RTLD_NOW | RTLD_LOCAL}, kLoadLimit);
    if (!loaded) return loaded.error();
    std::uint64_t start = 0;
    if (const auto files = mappedFiles(pid_))
        for (const MappedFile& file : *files)
            if (file.path == agentPath_ && !file.deleted) start = file.start;
    const std::array<const char*, 1> name{"agent_attach"};
    const auto address = functionAddresses(agentPath_, start, name);
    if (*loaded == 0 || start == 0 || !address || address->front() == 0)
        return core::Error{core::ErrorCode::Target, "the process could not load the agent",
                           "start it with 'highwater record -- …' instead"};
    const auto started =
        tracee->call(address->front(), {socket, *scratch, kScratchBytes}, kLoadLimit);
    resume(*tracee);
    return started ? core::Status{} : core::Status{started.error()};
}

}  // namespace hw::profiler
