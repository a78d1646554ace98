// SPDX-License-Identifier: MIT
// Hand-made activity buffers, walked by the CUPTI of this machine and by our own walker alike.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>

#include "profiler/cupti/parser.h"
#include "profiler/cupti/refusal.h"

namespace hw::profiler::cupti {
namespace {

using wire::Activity;
using wire::ActivityKind;

struct Taken final : Sink {
    std::vector<Activity> activities;
    std::map<std::uint32_t, std::string> names;
    std::vector<std::string> devices;
    void name(std::uint32_t id, std::string_view text) override { names[id] = text; }
    void activity(const Activity& activity) override { activities.push_back(activity); }
    void device(std::uint32_t ordinal, std::uint64_t bytes, std::string_view name) override {
        devices.push_back(std::to_string(ordinal) + " " + std::to_string(bytes) + " " +
                          std::string(name));
    }
};

class Buffer {
public:
    template <class Record>
    Buffer& add(const Record& record, std::size_t bytes = sizeof(Record)) {
        const auto* data = reinterpret_cast<const char*>(&record);
        for (std::size_t at = 0; at < bytes; at += 8) {
            words_.push_back(0);
            std::memcpy(&words_.back(), data + at, std::min<std::size_t>(8, bytes - at));
        }
        return *this;
    }
    std::uint8_t* data() { return reinterpret_cast<std::uint8_t*>(words_.data()); }
    std::size_t size() const { return words_.size() * 8; }

private:
    std::vector<std::uint64_t> words_;
};

CUpti_ActivityKernel10 kernel(const char* name, std::uint32_t correlation) {
    CUpti_ActivityKernel10 record{};
    record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    record.start = 1000 + correlation;
    record.end = 2000 + correlation;
    record.deviceId = 3;
    record.streamId = 7;
    record.correlationId = correlation;
    record.name = name;
    return record;
}

CUpti_ActivityExternalCorrelation external(CUpti_ExternalCorrelationKind kind, std::uint64_t id) {
    CUpti_ActivityExternalCorrelation record{};
    record.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
    record.externalKind = kind;
    record.externalId = id;
    record.correlationId = 9;
    return record;
}

/// Ours, and the real one where it is installed.
std::vector<NextRecord> walkers() {
    std::vector<NextRecord> found{&nextRecord};
    for (const char* name : {"libcupti.so.13", "/usr/local/cuda/lib64/libcupti.so.13",
                             "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13"})
        if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL); library != nullptr) {
            found.push_back(
                reinterpret_cast<NextRecord>(dlsym(library, "cuptiActivityGetNextRecord")));
            break;
        }
    return found;
}

class CuptiParser : public ::testing::Test {
protected:
    Parsed parse(Buffer& buffer, std::size_t valid, NextRecord walker) {
        taken_ = Taken();
        return Parser(walker).parse(buffer.data(), valid, taken_);
    }
    Taken taken_;
};

TEST_F(CuptiParser, KindsBecomeActivities) {
    CUpti_ActivityMemcpy6 copy{};
    copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
    copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
    copy.bytes = 4096;
    copy.start = 1, copy.end = 2;
    CUpti_ActivityMemset4 set{};
    set.kind = CUPTI_ACTIVITY_KIND_MEMSET;
    set.bytes = 64;
    set.start = 3, set.end = 4;
    CUpti_ActivityMemcpyPtoP4 peer{};
    peer.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
    peer.bytes = 128;
    peer.start = 5, peer.end = 6;
    CUpti_ActivityMemory4 memory{};
    memory.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
    memory.memoryOperationType = CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
    memory.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    memory.address = 0x7f00, memory.bytes = 2 << 20, memory.timestamp = 77;
    CUpti_ActivityMemoryPool3 pool{};
    pool.kind = CUPTI_ACTIVITY_KIND_MEMORY_POOL;
    pool.memoryPoolOperationType = CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_TRIMMED;
    pool.size = 900, pool.utilizedSize = 300, pool.timestamp = 78;
    CUpti_ActivityAPI api{};
    api.kind = CUPTI_ACTIVITY_KIND_DRIVER;
    api.cbid = 307, api.threadId = 42, api.correlationId = 9;
    CUpti_ActivityMarker2 marker{};
    marker.kind = CUPTI_ACTIVITY_KIND_MARKER;
    marker.flags = CUPTI_ACTIVITY_FLAG_MARKER_START;
    marker.id = 5, marker.name = "epoch";
    CUpti_ActivitySynchronization2 sync{};
    sync.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
    sync.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
    CUpti_ActivityOverhead3 overhead{};
    overhead.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
    overhead.overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH;
    CUpti_ActivityDevice5 device{};
    device.kind = CUPTI_ACTIVITY_KIND_DEVICE;
    device.id = 1, device.globalMemorySize = 80, device.name = "H200";
    Buffer buffer;
    buffer.add(kernel("gemm", 9)).add(copy).add(set).add(peer).add(memory).add(pool).add(api);
    buffer.add(marker).add(sync).add(overhead).add(device);
    buffer.add(external(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2, 1234));
    buffer.add(external(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 5));  // torch.profiler's
    for (const NextRecord walker : walkers()) {
        const Parsed parsed = parse(buffer, buffer.size(), walker);
        EXPECT_EQ(parsed.records, 12u);
        EXPECT_EQ(parsed.kernels, 1u);
        EXPECT_EQ(parsed.others, 1u);
        EXPECT_EQ(parsed.shortRecords + parsed.untimed + parsed.unreadable, 0u);
        ASSERT_EQ(taken_.activities.size(), 11u);
        const Activity& first = taken_.activities[0];
        EXPECT_EQ(first.begin, 1009);
        EXPECT_EQ(first.device, 3u);
        EXPECT_EQ(taken_.names.at(first.name), "gemm");
        EXPECT_EQ(taken_.activities[1].value, 4096);
        EXPECT_EQ(taken_.activities[1].detail, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
        EXPECT_EQ(taken_.activities[3].detail, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);
        EXPECT_EQ(taken_.activities[4].address, 0x7f00);
        EXPECT_EQ(taken_.activities[4].detail, static_cast<int>(wire::MemoryDetail::Release));
        EXPECT_EQ(taken_.activities[5].end, 300) << "the pool's used bytes";
        EXPECT_EQ(taken_.activities[6].stream, 42u) << "a call's thread";
        EXPECT_EQ(taken_.names.at(taken_.activities[7].name), "epoch");
        EXPECT_EQ(taken_.activities[9].detail, 1);
        EXPECT_EQ(taken_.activities[10].value, 1234) << "the op's id";
        EXPECT_EQ(taken_.devices, std::vector<std::string>{"1 80 H200"});
    }
}

TEST_F(CuptiParser, CutBuffersGiveWhatIsWhole) {
    Buffer buffer;
    for (std::uint32_t i = 1; i <= 3; ++i) buffer.add(kernel("k", i));
    for (const NextRecord walker : walkers())
        for (std::size_t valid = 0; valid <= buffer.size(); ++valid) {
            const Parsed parsed = parse(buffer, valid, walker);
            EXPECT_EQ(taken_.activities.size(), parsed.records);
            EXPECT_LE(parsed.records, 3u);
            EXPECT_GE(parsed.records, valid / sizeof(CUpti_ActivityKernel10)) << valid;
            for (const Activity& each : taken_.activities) EXPECT_GT(each.correlation, 0u);
        }
}

TEST_F(CuptiParser, UnknownKindsEndABufferAndAreCounted) {
    CUpti_ActivityAPI unknown{};
    unknown.kind = static_cast<CUpti_ActivityKind>(9999);
    Buffer buffer;
    buffer.add(kernel("k", 1)).add(unknown).add(kernel("k", 2));
    const std::size_t behind = sizeof(unknown) + sizeof(CUpti_ActivityKernel10);
    for (const NextRecord walker : walkers()) {
        const Parsed parsed = parse(buffer, buffer.size(), walker);
        EXPECT_EQ(parsed.records, 1u);
        EXPECT_EQ(parsed.unreadable, behind);
    }
}

TEST_F(CuptiParser, KernelsWithoutTimesAreCounted) {
    auto record = kernel("k", 1);
    record.start = record.end = 0;
    Buffer buffer;
    buffer.add(record).add(kernel("k", 2));
    for (const NextRecord walker : walkers()) {
        EXPECT_EQ(parse(buffer, buffer.size(), walker).untimed, 1u);
        ASSERT_EQ(taken_.activities.size(), 1u);
        EXPECT_EQ(taken_.activities[0].correlation, 2u);
    }
}

constexpr std::size_t kOldKernel = 152;      // ends behind graphNodeId, as CUPTI 11's did
constexpr std::size_t kAncientKernel = 104;  // has no name

template <std::size_t bytes>
CUptiResult oldWalker(std::uint8_t* buffer, std::size_t valid, CUpti_Activity** record) {
    std::uint8_t* at =
        *record == nullptr ? buffer : reinterpret_cast<std::uint8_t*>(*record) + bytes;
    if (at + bytes > buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = reinterpret_cast<CUpti_Activity*>(at);
    return CUPTI_SUCCESS;
}

TEST_F(CuptiParser, OlderVersionsOfARecordAreReadAsFarAsTheyGo) {
    Buffer old, ancient;
    for (std::uint32_t i = 1; i <= 3; ++i) {
        old.add(kernel("old", i), kOldKernel);
        ancient.add(kernel("ancient", i), kAncientKernel);
    }
    EXPECT_EQ(parse(old, old.size(), &oldWalker<kOldKernel>).records, 3u);
    EXPECT_EQ(taken_.activities[2].end, 2003);
    EXPECT_EQ(taken_.names.at(1), "old");
    const Parsed parsed = parse(ancient, ancient.size(), &oldWalker<kAncientKernel>);
    EXPECT_EQ(parsed.records, 0u);
    EXPECT_EQ(parsed.shortRecords, 3u);
}

TEST(CuptiRefusal, NamesTheToolThatHasCupti) {
    const auto held = [](const char* by) {
        return refusalOf(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, "cuptiSubscribe_v2", by,
                         true)
            .what;
    };
    const std::string call = " (cuptiSubscribe_v2: error 39)";
    EXPECT_EQ(held("CUPTI for Nsight Systems"), "CUPTI is in use by Nsight Systems (nsys)" + call);
    EXPECT_EQ(held("ncu"), "CUPTI is in use by Nsight Compute (ncu)" + call);
    EXPECT_EQ(held("CUPTI for Kineto"), "CUPTI is in use by torch.profiler (Kineto)" + call);
    EXPECT_EQ(held("CUPTI for other"), "CUPTI is in use by CUPTI for other" + call);
    EXPECT_EQ(
        held(""),
        "CUPTI is in use by another profiler, such as nsys, ncu or torch.profiler (Kineto)" + call);
}

}  // namespace
}  // namespace hw::profiler::cupti
