// SPDX-License-Identifier: MIT
// Turns CUPTI on and off in the process, and what it delivers into frames.
#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "profiler/cupti/buffers.h"
#include "profiler/cupti/library.h"
#include "profiler/cupti/parser.h"
#include "profiler/wire/format.h"
#include "profiler/wire/gpu_api.h"

namespace hw::profiler::cupti {

/// One a process, never destroyed: CUPTI calls back until the end. start() to stop() is one
/// recording: driver memory all the time, kernels and calls between begin() and end().
class Collector final : private Sink {
public:
    static Collector& instance();

    bool start(const wire::GpuHost& host);
    bool begin();
    void end();
    void flush();
    void stop();
    void push(std::int64_t op);
    void pop();
    void abandon();

private:
    enum class State { Off, Ready, Collecting };

    Collector() = default;
    bool subscribe();
    bool enable(CUpti_ActivityKind kind, bool needed);
    void enableCalls(bool on);
    void watch(CUpti_CallbackDomain domain, CUpti_CallbackId id, bool on);
    bool refuse(const Refusal& refusal);
    void send(wire::Type type, const std::string& payload, bool wait = true);
    void gap(const std::string& what, const std::string& why);
    void sendClock();
    void sendFootprint(std::uint32_t device, std::int64_t bytes);

    // On the reader's thread.
    void read();
    void drain();
    void parse(const Buffers::Filled& filled);
    void sendActivities();
    void reportLosses();
    void name(std::uint32_t id, std::string_view text) override;
    void activity(const wire::Activity& activity) override;
    void device(std::uint32_t ordinal, std::uint64_t bytes, std::string_view name) override;

    // Called by CUPTI, on any thread.
    static void CUPTIAPI requested(std::uint8_t** buffer, std::size_t* bytes, std::size_t* records);
    static void CUPTIAPI completed(CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
                                   std::size_t bytes, std::size_t validBytes);
    static void CUPTIAPI called(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                const void* data);
    void memoryCall(CUpti_CallbackId id, const CUpti_CallbackData& call);
    std::uint64_t launches() const;

    wire::GpuHost host_{};
    const Library* cupti_ = nullptr;
    CUpti_SubscriberHandle subscriber_ = nullptr;
    std::atomic<State> state_{State::Off};
    std::mutex control_;           // of start(), begin(), end(), stop()
    std::atomic<int> readers_{0};  // started so far; the last one reads
    std::mutex reading_;           // of parser_ and what it fills
    std::atomic<bool> flushing_{false}, draining_{false};
    std::atomic<std::uint64_t> launchesOfRuntime_{0}, launchesOfDriver_{0};
    Buffers buffers_;
    Parser* parser_ = nullptr;
    Parsed parsed_;
    std::size_t refusedBefore_ = 0;
    std::string pending_;            // activities of the next frame
    std::uint64_t devicesSeen_ = 0;  // a bit each
    std::int64_t deviceBytes_ = 0;   // that CUPTI takes of a device
};

}  // namespace hw::profiler::cupti
