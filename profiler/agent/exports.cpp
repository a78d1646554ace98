// SPDX-License-Identifier: MIT
// What the shim calls through ctypes. Sizes and addresses travel as 64-bit numbers.
#include <stdio.h>
#include <string.h>

#include "profiler/agent/allocations.h"
#include "profiler/agent/callables.h"
#include "profiler/agent/channel.h"
#include "profiler/agent/checksum.h"
#include "profiler/agent/clock.h"
#include "profiler/agent/embedded.h"
#include "profiler/agent/got.h"
#include "profiler/agent/gpu.h"
#include "profiler/agent/interpreter.h"
#include "profiler/agent/native/agent_api.h"

namespace hw::profiler::agent {

extern Config gConfig;
int attach(const char* socketPath, std::uint64_t scratch, std::uint64_t bytes);

}  // namespace hw::profiler::agent

using namespace hw::profiler;
using namespace hw::profiler::agent;

#define HW_EXPORT extern "C" __attribute__((visibility("default")))

HW_EXPORT int agent_attach(const char* socketPath, std::uint64_t scratch, std::uint64_t bytes) {
    return attach(socketPath, scratch, bytes);
}
HW_EXPORT void hw_watch_end() {
    if (findPython()) watchEnd();
}
HW_EXPORT void hw_leave_interpreter() {
    leaveInterpreter();
}

/// Path of the native capture library; empty: there is none for this framework.
HW_EXPORT const char* hw_native() {
    return gConfig.nativeCapture;
}
/// Waits until the recorder has said whether there is one, where it promised to.
HW_EXPORT void hw_await_native(int milliseconds) {
    if ((gConfig.flags & wire::kConfigNative) != 0) awaitNative(gConfig, milliseconds);
}
/// Path of the n-th plan, where there is one.
HW_EXPORT const char* hw_programs() {
    return gConfig.livePrograms;
}
HW_EXPORT const char* hw_shim_name(int index) {
    return kShimFiles[index].name;
}
HW_EXPORT const char* hw_shim_source(int index) {
    return kShimFiles[index].text;
}

HW_EXPORT void hw_config(native::CaptureConfig* config) {
    config->steps = gConfig.steps;
    config->warmup = gConfig.warmup;
    config->every = gConfig.every;
    config->flags = gConfig.flags;
}

/// 0 queued, 1 no room (call hw_send_wait), -1 the channel is broken.
HW_EXPORT int hw_send(int type, const void* data, std::int64_t bytes) {
    return static_cast<int>(sendFrame(static_cast<wire::Type>(type), data,
                                      static_cast<std::size_t>(bytes), nullptr, 0, false));
}
HW_EXPORT int hw_send_wait(int type, const void* data, std::int64_t bytes) {
    return static_cast<int>(sendFrame(static_cast<wire::Type>(type), data,
                                      static_cast<std::size_t>(bytes), nullptr, 0, true));
}

/// Frames with their headers, one after the other.
HW_EXPORT int hw_send_frames(const void* data, std::int64_t bytes) {
    return static_cast<int>(sendFrames(data, static_cast<std::size_t>(bytes)));
}

/// The bytes of a storage straight from its memory, in chunks.
HW_EXPORT int hw_send_contents(std::int64_t seq, std::int64_t storage, const void* data,
                               std::int64_t bytes) {
    for (std::int64_t offset = 0; offset < bytes; offset += wire::kContentsChunk) {
        const std::int64_t head[4] = {seq, storage, bytes, offset};
        std::int64_t run = bytes - offset;
        if (run > wire::kContentsChunk) run = wire::kContentsChunk;
        const Sent sent =
            sendFrame(wire::Type::Contents, head, sizeof(head),
                      static_cast<const char*>(data) + offset, static_cast<std::size_t>(run), true);
        if (sent != Sent::Queued) return static_cast<int>(sent);
    }
    return 0;
}

HW_EXPORT int hw_broken() {
    return channelBroken() ? 1 : 0;
}
HW_EXPORT void hw_close() {
    closeChannel();
}
HW_EXPORT void hw_abandon() {
    disableCounting();
    abandonGpu();
    abandonChannel();
}
HW_EXPORT void hw_fault(const char* text, std::int64_t bytes) {
    const auto length = static_cast<std::uint32_t>(bytes);
    sendFrame(wire::Type::Fault, &length, sizeof(length), text, static_cast<std::size_t>(bytes),
              false);
}

HW_EXPORT int hw_patch() {
    capLiveBytes(0);
    return patchAllocator();
}
/// From now on the allocator gives out no more live bytes than hw_cap().
HW_EXPORT void hw_limit() {
    capLiveBytes(gConfig.cap);
}
/// The limit on live bytes that was asked for; 0: none.
HW_EXPORT std::int64_t hw_cap() {
    return gConfig.cap;
}
/// As refusedBytes().
HW_EXPORT std::int64_t hw_refused() {
    return refusedBytes();
}
HW_EXPORT void hw_unpatch() {
    unpatchAllocator();
}
/// As canStandFor(), standFor() and silence().
HW_EXPORT int hw_can_stand_for() {
    return canStandFor() ? 1 : 0;
}
HW_EXPORT PyObject* hw_stand_for(PyObject* original, PyObject* before, PyObject* after) {
    return standFor(original, before, after);
}
HW_EXPORT void hw_silence(PyObject* standing, int silent) {
    silence(standing, silent != 0);
}
/// What libraries whose names begin so (`others`: all others) know as `symbol` is at `to` from now
/// on, where it was at `from`; in how many places.
HW_EXPORT int hw_redirect(const char* libraries, int others, const char* symbol, std::uint64_t from,
                          std::uint64_t to) {
    void* const before = reinterpret_cast<void*>(from);
    return patchSlots({libraries, others != 0}, symbol, {&before, 1}, reinterpret_cast<void*>(to));
}
HW_EXPORT void hw_pause(int paused) {
    pauseCounting(paused != 0);
}
HW_EXPORT std::int64_t hw_block(std::uint64_t address) {
    return blockBytes(static_cast<std::uintptr_t>(address));
}
HW_EXPORT int hw_watch(std::uint64_t address) {
    return watchBlock(static_cast<std::uintptr_t>(address)) ? 1 : 0;
}
HW_EXPORT std::int64_t hw_freed(std::int64_t* addresses) {
    return takeFreed(addresses);
}
HW_EXPORT std::int64_t hw_now() {
    return now();
}

/// See OpWindow.
HW_EXPORT void hw_begin(native::OpWindow* window) {
    window->liveBefore = beginOpWindow();
    window->beginNs = now();
    enterOp(window->beginNs);
}
HW_EXPORT void hw_end(native::OpWindow* window) {
    window->endNs = now();
    leaveOp();
    const AllocationFigures figures = endOpWindow();
    window->live = figures.live;
    window->peak = figures.peak;
}
/// Since the last call.
HW_EXPORT void hw_window(native::MemoryWindow* window) {
    const AllocationFigures figures = restartStepWindow();
    window->live = figures.live;
    window->peak = figures.peak;
}

namespace {

int tagged(std::uint64_t address, std::uint64_t tag, int uncounted, native::TaggedBlock* out) {
    const BlockTag block = tagBlock(static_cast<std::uintptr_t>(address),
                                    static_cast<std::uintptr_t>(tag), uncounted != 0);
    out->bytes = block.bytes;
    out->before = static_cast<std::int64_t>(block.before);
    out->steps = block.steps;
    return block.watched ? 1 : 0;
}
void allocated(std::uint64_t address, std::int64_t bytes) {
    countAllocated(static_cast<std::uintptr_t>(address), bytes);
}
void released(std::uint64_t address) {
    countFreed(static_cast<std::uintptr_t>(address));
}
int admit(std::int64_t bytes) {
    return admitBlock(bytes) ? 1 : 0;
}
int rescue(native::Shortage* shortage) {
    return rescueBlock(*shortage) ? 1 : 0;
}

}  // namespace

/// As startGpu() and the others of agent/gpu.h.
HW_EXPORT int hw_gpu_start(int required) {
    return startGpu(required != 0);
}
HW_EXPORT int hw_gpu_begin(int required) {
    return beginGpu(required != 0);
}
HW_EXPORT void hw_gpu_end() {
    endGpu();
}
HW_EXPORT void hw_gpu_flush() {
    flushGpu();
}
HW_EXPORT void hw_gpu_stop() {
    stopGpu();
}

/// Of planners/dtr/dtr_heuristic.h, where DTR is to keep live bytes within hw_cap(); else -1.
HW_EXPORT std::int64_t hw_heuristic() {
    return gConfig.heuristic;
}

/// What the native capture library calls of us.
HW_EXPORT const void* hw_api() {
    static const native::AgentApi api{sizeof(native::AgentApi),

                                      &hw_send_frames,
                                      &tagged,
                                      &hw_freed,
                                      freedBlocks(),
                                      &hw_begin,
                                      &hw_end,
                                      &hw_pause,
                                      &hw_block,
                                      &hw_window,
                                      &hw_now,
                                      &allocated,
                                      &released,
                                      &onShortage,
                                      &admit,
                                      &rescue,
                                      &countStep,
                                      &checksum};
    return &api;
}
