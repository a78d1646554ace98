// SPDX-License-Identifier: MIT
// On which streams recomputations run, and who waits for whom: on GPUs that are made up.
#include "streams.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <gtest/gtest.h>

#include <array>
#include <stdexcept>

namespace hw::live::runtime {
namespace {

using c10::Device;
using c10::Stream;

std::array<c10::StreamId, 2> gCurrent{};  // of each device
std::vector<std::string> gLog;

Stream streamOf(c10::DeviceIndex device, c10::StreamId id) {
    return Stream(Stream::UNSAFE, Device(c10::DeviceType::CUDA, device), id);
}
std::string name(const Stream& stream) {
    return std::to_string(stream.device_index()) + ":" + std::to_string(stream.id());
}

struct MadeUpGpus final : c10::impl::DeviceGuardImplInterface {
    explicit MadeUpGpus(c10::DeviceType) {}
    MadeUpGpus() = default;
    c10::DeviceType type() const override { return c10::DeviceType::CUDA; }
    Device exchangeDevice(Device) const override { return getDevice(); }
    Device getDevice() const override { return {c10::DeviceType::CUDA, 0}; }
    void setDevice(Device) const override {}
    void uncheckedSetDevice(Device) const noexcept override {}
    c10::DeviceIndex deviceCount() const noexcept override { return 2; }
    Stream getStream(Device device) const noexcept override {
        return streamOf(device.index(), gCurrent[static_cast<std::size_t>(device.index())]);
    }
    Stream exchangeStream(Stream stream) const noexcept override {
        const Stream before = getStream(stream.device());
        gCurrent[static_cast<std::size_t>(stream.device_index())] = stream.id();
        return before;
    }
    void record(void** event, const Stream& stream, const c10::DeviceIndex,
                const c10::EventFlag) const override {
        *event = new std::string(name(stream));
    }
    void block(void* event, const Stream& stream) const override {
        gLog.push_back(name(stream) + " waits for " + *static_cast<std::string*>(event));
    }
    void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
        delete static_cast<std::string*>(event);
    }
    bool queryEvent(void*) const override { return true; }
};
C10_REGISTER_GUARD_IMPL(CUDA, MadeUpGpus);

class StreamsTest : public testing::Test {
protected:
    void SetUp() override {
        gCurrent = {7, 0};
        gLog.clear();
        read();
    }
    /// An op reads on the current device.
    std::vector<std::size_t> read() { return streams_.follow(kGpu, true, 4); }

    static constexpr c10::DeviceType kGpu = c10::DeviceType::CUDA;
    Streams streams_;
};

TEST_F(StreamsTest, NobodyWaitsWhereAllIsOnOne) {
    EXPECT_FALSE(streams_.elsewhere());
    streams_.run([] { EXPECT_EQ(gCurrent[0], 7); });
    EXPECT_TRUE(gLog.empty());
}

TEST_F(StreamsTest, AnOpElsewhereWaitsForWhatIsQueued) {
    gCurrent[0] = 3;
    EXPECT_TRUE(streams_.elsewhere());
    EXPECT_EQ(gLog, std::vector<std::string>{"0:3 waits for 0:7"});
    EXPECT_TRUE(read().empty());  // the device has its stream already
    EXPECT_TRUE(streams_.elsewhere());
}

TEST_F(StreamsTest, RecomputationsRunOnThePlansStream) {
    gCurrent[0] = 3;
    streams_.run([] {
        EXPECT_EQ(gCurrent[0], 7);
        gLog.emplace_back("recomputes");
    });
    EXPECT_EQ(gCurrent[0], 3);
    EXPECT_EQ(gLog, (std::vector<std::string>{"recomputes", "0:3 waits for 0:7"}));
}

TEST_F(StreamsTest, TheThreadsStreamComesBackAfterAnException) {
    gCurrent[0] = 3;
    EXPECT_THROW(streams_.run([] { throw std::runtime_error("out of memory"); }),
                 std::runtime_error);
    EXPECT_EQ(gCurrent[0], 3);
}

TEST_F(StreamsTest, AnotherStepSettlesAnew) {
    gCurrent[0] = 3;
    streams_.reset();
    EXPECT_FALSE(streams_.elsewhere());
    read();
    gCurrent[0] = 7;
    EXPECT_TRUE(streams_.elsewhere());
    EXPECT_EQ(gLog, std::vector<std::string>{"0:7 waits for 0:3"});
}

TEST_F(StreamsTest, WhatBroughtDataBeforeIsTold) {
    streams_.reset();
    gCurrent[0] = 3;  // where batches are copied to the GPU ahead of time
    EXPECT_TRUE(streams_.follow(kGpu, false, 0).empty());
    EXPECT_TRUE(streams_.follow(Device(kGpu, 1), false, 1).empty());
    EXPECT_FALSE(streams_.elsewhere());
    gCurrent[0] = 7;
    EXPECT_TRUE(streams_.follow(kGpu, false, 2).empty());
    EXPECT_EQ(read(), std::vector<std::size_t>{0});
}

}  // namespace
}  // namespace hw::live::runtime
