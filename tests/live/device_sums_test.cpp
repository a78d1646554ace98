// SPDX-License-Identifier: MIT
// Sums of what is dropped on a GPU: their arithmetic, their kernel as NVRTC compiles it, and what
// is made of them, with a driver that works on the host's memory.
#include "device_sums.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <list>

#include "device_sums_kernel.h"
#include "slots.h"
#include "tests/live/live_harness.h"

namespace hw::live::runtime {
namespace {

using Bytes = std::vector<unsigned char>;

Bytes someBytes(std::size_t count) {
    Bytes bytes(count);
    for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<unsigned char>(i * 37 + i / 251);
    return bytes;
}

std::uint64_t sumBy(const Bytes& bytes, std::uint64_t threads) {
    std::vector<std::uint64_t> aligned((bytes.size() + 7) / 8 + 1);
    std::memcpy(aligned.data(), bytes.data(), bytes.size());
    std::uint64_t sum = 0;
    for (std::uint64_t thread = threads; thread > 0; --thread)
        sum += hwPartOfSum(reinterpret_cast<const unsigned char*>(aligned.data()), bytes.size(),
                           thread - 1, threads);
    return sum;
}

TEST(DeviceSumsArithmetic, IsTheSameForAnyNumberOfThreads) {
    for (const std::size_t count : {1, 7, 8, 9, 64, 1000, 4093}) {
        const Bytes bytes = someBytes(count);
        for (const std::uint64_t threads : {2, 3, 32, 256, 5000})
            EXPECT_EQ(sumBy(bytes, threads), sumBy(bytes, 1)) << count << " by " << threads;
    }
}

TEST(DeviceSumsArithmetic, SeesEveryByteAndItsPlace) {
    for (const std::size_t count : {5, 16, 61}) {
        const Bytes bytes = someBytes(count);
        for (std::size_t i = 0; i < count; ++i) {
            Bytes other = bytes;
            other[i] ^= 1;
            EXPECT_NE(sumBy(other, 4), sumBy(bytes, 4)) << i << " of " << count;
        }
    }
    const Bytes bytes = someBytes(64);
    Bytes swapped = bytes;
    std::swap_ranges(swapped.begin(), swapped.begin() + 8, swapped.begin() + 32);
    EXPECT_NE(sumBy(swapped, 4), sumBy(bytes, 4));
    EXPECT_NE(sumBy(Bytes(64, 0), 4), sumBy(Bytes(72, 0), 4));
}

TEST(DeviceSumsKernel, IsCompiledForTheGpuAtHandOrForAnyWhereThatIsUnknown) {
    std::string why;
    const std::string newest = compileDeviceSums(90, why);
    if (newest.empty() && why.find("not found") != std::string::npos) GTEST_SKIP() << why;
    EXPECT_NE(newest.find("hwSum"), std::string::npos) << why;
    EXPECT_NE(compileDeviceSums(80, why).find("hwSum"), std::string::npos) << why;
    const std::string text = compileDeviceSums(998, why);
    EXPECT_NE(text.find(".entry hwSum"), std::string::npos) << why;
}

/// What the driver does here, and what it is to fail.
struct Played {
    const char* fails = "";
    int with = 999;
    bool capturing = false;
    int contexts = 0, launches = 0, setUps = 0;
} gPlayed;

int answer(const char* call) {
    return std::strcmp(gPlayed.fails, call) == 0 ? gPlayed.with : 0;
}

int launch(void*, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned,
           unsigned, void*, void** parameters, void**) {
    EXPECT_EQ(gPlayed.contexts, 1);
    const auto* const data = *static_cast<const unsigned char**>(parameters[0]);
    const auto bytes = *static_cast<unsigned long long*>(parameters[1]);
    auto* const result =
        reinterpret_cast<std::uint64_t*>(*static_cast<CudaDriver::Address*>(parameters[2]));
    const unsigned all = blocks * threads;
    for (unsigned thread = 0; thread < all; ++thread)
        *result += hwPartOfSum(data, bytes, thread, all);
    ++gPlayed.launches;
    return answer("cuLaunchKernel");
}

const CudaDriver kDriver{
    [](int* device, int ordinal) {
        *device = ordinal;
        return answer("cuDeviceGet");
    },
    [](int* value, int, int) {
        *value = 9;
        return 0;
    },
    [](void** context, int) {
        *context = &gPlayed;
        return answer("cuDevicePrimaryCtxRetain");
    },
    [](void*) {
        ++gPlayed.contexts;
        return 0;
    },
    [](void**) {
        --gPlayed.contexts;
        return 0;
    },
    [](int* mode) {
        *mode = 2 - *mode;
        return 0;
    },
    [](void*, int* status) {
        *status = gPlayed.capturing ? 1 : 0;
        return answer("cuStreamIsCapturing");
    },
    [](void** module, const void*) {
        *module = &gPlayed;
        return answer("cuModuleLoadData");
    },
    [](void** function, void*, const char* name) {
        *function = &gPlayed;
        return std::strcmp(name, "hwSum");
    },
    [](CudaDriver::Address* address, std::size_t bytes) {
        if (answer("cuMemAlloc") != 0) return answer("cuMemAlloc");
        static std::list<std::vector<char>> memory;  // as long as the process
        memory.emplace_back(bytes);
        *address = reinterpret_cast<CudaDriver::Address>(memory.back().data());
        ++gPlayed.setUps;
        return 0;
    },
    [](CudaDriver::Address address, unsigned char value, std::size_t bytes, void*) {
        std::memset(reinterpret_cast<void*>(address), value, bytes);
        return answer("cuMemsetD8Async");
    },
    &launch,
    [](void* to, CudaDriver::Address from, std::size_t bytes, void*) {
        std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
        return answer("cuMemcpyDtoHAsync");
    },
    [](void*) { return answer("cuStreamSynchronize"); }};

constexpr c10::DeviceIndex kIndex = 1;  // of GPUs that are made up, see streams_test.cpp

/// The host's memory, said to be a GPU's.
class GpuMemory final : public c10::Allocator {
public:
#if __has_include(<torch/headeronly/version.h>)
    c10::DataPtr allocate(std::size_t bytes) override {
        return of(bytes);
    }
    void copy_data(void* to, const void* from, std::size_t bytes) const override {
        std::memcpy(to, from, bytes);
    }
#else
    c10::DataPtr allocate(std::size_t bytes) const override {
        return of(bytes);
    }
#endif
    c10::DeleterFnPtr raw_deleter() const override {
        return &std::free;
    }

private:
    static c10::DataPtr of(std::size_t bytes) {
        void* const data = std::malloc(bytes);
        return {data, data, &std::free, c10::Device(c10::DeviceType::CUDA, kIndex)};
    }
};

StoragePointer storageOf(const Bytes& bytes) {
    static GpuMemory memory;
    auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(),
                                                         bytes.size(), &memory, true);
    std::memcpy(const_cast<char*>(bytesOf(*storage)), bytes.data(), bytes.size());
    return storage;
}

class DeviceSumsTest : public testing::Test {
protected:
    void SetUp() override { gPlayed = {}; }

    std::uint64_t take(const Bytes& bytes) { return sums_.take(*storageOf(bytes), stream_); }
    bool compare(std::uint64_t number, const Bytes& bytes) {
        return sums_.compare(number, *storageOf(bytes), stream_);
    }

    const c10::Stream stream_{c10::Stream::UNSAFE, c10::Device(c10::DeviceType::CUDA, kIndex), 0};
    const Bytes bytes_ = someBytes(10'000), others_ = someBytes(9'999);
    DeviceSums sums_{&kDriver, [](int capability, std::string&) {
                         return std::string("for ") + std::to_string(capability);
                     }};
};

TEST_F(DeviceSumsTest, TellsWhichComparisonsFoundOthers) {
    Bytes changed = bytes_;
    changed[4321] ^= 4;
    const std::uint64_t first = take(bytes_), second = take(others_), third = take(bytes_);
    EXPECT_TRUE(compare(third, bytes_));
    EXPECT_TRUE(compare(first, changed));
    EXPECT_TRUE(compare(second, others_));
    EXPECT_EQ(sums_.differences(), std::vector<std::size_t>{1});
    EXPECT_TRUE(sums_.differences().empty());
    EXPECT_EQ(gPlayed.setUps, 1);
    EXPECT_EQ(gPlayed.contexts, 0);
    EXPECT_EQ(sums_.why(), "");
}

TEST_F(DeviceSumsTest, EachStepBeginsAnew) {
    const std::uint64_t earlier = take(bytes_);
    sums_.beginStep();
    EXPECT_FALSE(compare(earlier, bytes_));
    const std::uint64_t number = take(others_);
    EXPECT_TRUE(compare(number, others_));
    EXPECT_TRUE(sums_.differences().empty());
}

TEST_F(DeviceSumsTest, WhatThereIsNoRoomForIsNotCompared) {
    const Bytes few(8);
    std::uint64_t last = 0;
    for (std::uint64_t i = 0; i < DeviceSums::kMostPairs; ++i) last = take(few);
    EXPECT_GT(last, 0U);
    EXPECT_EQ(take(few), 0U);
    EXPECT_TRUE(compare(last, few));
    EXPECT_TRUE(sums_.differences().empty());
    sums_.beginStep();
    EXPECT_GT(take(few), 0U);
}

TEST_F(DeviceSumsTest, ACallThatFailsEndsIt) {
    for (const char* const call :
         {"cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuStreamIsCapturing", "cuModuleLoadData",
          "cuMemAlloc", "cuMemsetD8Async", "cuLaunchKernel"}) {
        DeviceSums sums(&kDriver, [](int, std::string&) { return std::string("image"); });
        gPlayed.fails = call;
        EXPECT_EQ(sums.take(*storageOf(bytes_), stream_), 0U) << call;
        EXPECT_NE(sums.why().find(std::string(call) + " failed with 999"), std::string::npos);
        gPlayed.fails = "";
        EXPECT_EQ(sums.take(*storageOf(bytes_), stream_), 0U) << call;
        EXPECT_EQ(gPlayed.contexts, 0);
    }
}

TEST_F(DeviceSumsTest, ALateFailureIsNoDifference) {
    for (const char* const call : {"cuMemcpyDtoHAsync", "cuStreamSynchronize"}) {
        DeviceSums sums(&kDriver, [](int, std::string&) { return std::string("image"); });
        const std::uint64_t number = sums.take(*storageOf(bytes_), stream_);
        EXPECT_TRUE(sums.compare(number, *storageOf(others_), stream_));
        gPlayed.fails = call;
        EXPECT_TRUE(sums.differences().empty());
        EXPECT_NE(sums.why().find(call), std::string::npos);
        gPlayed.fails = "";
    }
}

TEST_F(DeviceSumsTest, WithoutMemoryItIsTriedAgain) {
    gPlayed.fails = "cuMemAlloc";
    gPlayed.with = 2;
    EXPECT_EQ(take(bytes_), 0U);
    EXPECT_EQ(sums_.why(), "");
    gPlayed.fails = "";
    EXPECT_GT(take(bytes_), 0U);
}

TEST_F(DeviceSumsTest, NothingIsQueuedWhileAGraphIsCaptured) {
    gPlayed.capturing = true;
    EXPECT_EQ(take(bytes_), 0U);
    gPlayed.capturing = false;
    gPlayed.fails = "cuStreamIsCapturing";
    gPlayed.with = 906;
    EXPECT_EQ(take(bytes_), 0U);
    EXPECT_EQ(gPlayed.launches, 0);
    gPlayed.fails = "";
    EXPECT_GT(take(bytes_), 0U);
    EXPECT_EQ(sums_.why(), "");
}

TEST_F(DeviceSumsTest, WithoutAKernelItSaysWhy) {
    DeviceSums sums(&kDriver, [](int, std::string& why) {
        why = "NVRTC was not found";
        return std::string();
    });
    EXPECT_EQ(sums.take(*storageOf(bytes_), stream_), 0U);
    EXPECT_NE(sums.why().find("NVRTC was not found"), std::string::npos);
}

/// Storages of a plan on a GPU, whose ops run on its stream.
class DeviceSlotsTest : public DeviceSumsTest {
protected:
    void SetUp() override {
        DeviceSumsTest::SetUp();
        const Bytes all = someBytes(600);
        storage_ = storageOf(all);
        streams_.follow(storage_->device(), true, 0);
        verifier_.watch(&streams_);
        verifier_.beginStep();
        slots_.verifyWith(&verifier_);
        slots_.reset(1);
        slots_.bind(0, storage_.get());
    }
    void recompute(const Bytes& bytes) {
        EXPECT_TRUE(slots_.drop(0));
        slots_.fill(0, storageOf(bytes), 0);
        Mismatch made;
        made.op = 7;
        made.name = "aten::relu";
        if (verifier_.unattributed()) verifier_.attribute(made);
    }

    OpLock lock_;
    Slots slots_{lock_};
    Streams streams_;
    Verifier verifier_{test::silentAgent(), DeviceSums(&kDriver, [](int, std::string&) {
                           return std::string("image");
                       })};
    StoragePointer storage_;
};

TEST_F(DeviceSlotsTest, OtherBytesAreOneOpsMismatch) {
    Bytes other = someBytes(600);
    recompute(other);
    EXPECT_TRUE(verifier_.queued());
    EXPECT_FALSE(verifier_.unattributed());
    EXPECT_EQ(verifier_.bytes(), 600);
    EXPECT_FALSE(verifier_.settle());
    other[599] ^= 1;
    recompute(other);
    const auto mismatch = verifier_.settle();
    ASSERT_TRUE(mismatch);
    EXPECT_EQ(mismatch->op, 7);
    EXPECT_EQ(mismatch->name, "aten::relu");
    EXPECT_EQ(mismatch->bytes, 600);
    EXPECT_FALSE(verifier_.queued());
}

TEST_F(DeviceSlotsTest, WhereNoStreamIsKnownOrItIsOffNothingIsQueued) {
    streams_.reset();
    recompute(Bytes(600));
    streams_.follow(storage_->device(), true, 0);
    verifier_.setLevel(Verify::Off);
    recompute(Bytes(600));
    EXPECT_FALSE(verifier_.queued());
    EXPECT_EQ(gPlayed.launches, 0);
}

TEST_F(DeviceSlotsTest, FewBytesAreNotCompared) {
    storage_ = storageOf(Bytes(16));
    slots_.reset(1);
    slots_.bind(0, storage_.get());
    recompute(someBytes(16));
    EXPECT_FALSE(verifier_.queued());
}

TEST_F(DeviceSlotsTest, WhatALibraryReservesIsNotAllWritten) {
    const auto covers = [&](caffe2::TypeMeta type, std::int64_t count) {
        c10::TensorImpl tensor(c10::Storage(storage_), c10::DispatchKeySet(c10::DispatchKey::CUDA),
                               type);
        tensor.set_sizes_contiguous({count});
        return coversStorage(tensor);
    };
    EXPECT_TRUE(covers(caffe2::TypeMeta::Make<float>(), 150));
    EXPECT_FALSE(covers(caffe2::TypeMeta::Make<float>(), 149));
    EXPECT_FALSE(covers(caffe2::TypeMeta::Make<std::uint8_t>(), 600));
}

TEST_F(DeviceSlotsTest, AnotherSizeIsNotRead) {
    recompute(Bytes(64));
    EXPECT_FALSE(verifier_.queued());
}

}  // namespace
}  // namespace hw::live::runtime
