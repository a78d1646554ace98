// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <list>
#include <random>
#include <thread>

#include "profiler/recorder/backlog.h"
#include "profiler/recorder/ring_reader.h"
#include "profiler/wire/frame_reader.h"
#include "profiler/wire/records.h"

namespace hw::profiler::wire {
namespace {

/// Builds payloads the way the shim does.
class Bytes {
public:
    template <class Value>
    requires std::is_arithmetic_v<Value> Bytes& operator<<(Value value) {
        const auto* begin = reinterpret_cast<const std::byte*>(&value);
        bytes_.insert(bytes_.end(), begin, begin + sizeof(Value));
        return *this;
    }
    Bytes& operator<<(const std::string& text) {
        *this << static_cast<std::uint32_t>(text.size());
        const auto* begin = reinterpret_cast<const std::byte*>(text.data());
        bytes_.insert(bytes_.end(), begin, begin + text.size());
        return *this;
    }
    const std::vector<std::byte>& get() const { return bytes_; }

private:
    std::vector<std::byte> bytes_;
};

using I64 = std::int64_t;

Bytes opPayload() {
    Bytes bytes;
    bytes << I64{7} << I64{40} << I64{1000} << I64{250} << I64{64} << I64{4096} << I64{2} << I64{99}
          << I64{3};
    bytes << std::uint8_t{2} << std::uint8_t{1} << std::string("aten::mm") << std::string("out")
          << std::string("{\"a\":[],\"k\":{}}");
    bytes << std::uint32_t{2} << I64{5} << std::int32_t{0} << I64{6} << std::int32_t{3};
    bytes << std::uint32_t{1} << I64{8} << std::uint8_t{1};
    bytes << std::uint32_t{1} << I64{4} << std::int32_t{2};
    return bytes;
}

std::vector<std::byte> copyOf(std::span<const std::byte> bytes) {
    return {bytes.begin(), bytes.end()};
}

TEST(FrameReader, GivesWholeFramesWhateverTheChunks) {
    const auto first = encodeFrame(Type::Op, opPayload().get());
    const auto second = encodeFrame(Type::StepConfirmed, {});
    std::vector<std::byte> stream = first;
    stream.insert(stream.end(), second.begin(), second.end());
    for (std::size_t chunk : {1u, 3u, 12u, 13u, 1000u}) {
        FrameReader reader;
        std::vector<std::pair<Type, std::vector<std::byte>>> frames;
        for (std::size_t at = 0; at < stream.size(); at += chunk) {
            reader.feed({stream.data() + at, std::min(chunk, stream.size() - at)});
            while (const auto frame = reader.next())
                frames.emplace_back(frame->type, copyOf(frame->payload));
        }
        ASSERT_EQ(frames.size(), 2u) << "chunks of " << chunk;
        EXPECT_EQ(frames[0], std::pair(Type::Op, opPayload().get()));
        EXPECT_EQ(frames[1], std::pair(Type::StepConfirmed, std::vector<std::byte>()));
        EXPECT_EQ(reader.pending(), 0u);
        EXPECT_TRUE(reader.error().empty());
    }
}

TEST(FrameReader, WaitsForTheRestOfAFrame) {
    const auto frame = encodeFrame(Type::Op, opPayload().get());
    FrameReader reader;
    reader.feed({frame.data(), frame.size() - 1});
    EXPECT_FALSE(reader.next());
    EXPECT_TRUE(reader.error().empty());
    reader.feed({frame.data() + frame.size() - 1, 1});
    EXPECT_TRUE(reader.next());
}

std::string errorAfterChange(std::size_t at, std::uint8_t value) {
    auto frame = encodeFrame(Type::Done, {});
    frame[at] = std::byte{value};
    FrameReader reader;
    reader.feed(frame);
    EXPECT_FALSE(reader.next());
    const auto good = encodeFrame(Type::Done, {});
    reader.feed(good);
    EXPECT_FALSE(reader.next()) << "a broken stream must stay broken";
    return reader.error();
}

/// What an agent does with its end of the shared memory.
class Writer {
public:
    explicit Writer(const RingReader& ring) : Writer(ring.file()) {}
    explicit Writer(int ring)
        : memory_(mmap(nullptr, kRingHeadBytes + kRingBytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                       ring, 0)) {}
    ~Writer() { munmap(memory_, kRingHeadBytes + kRingBytes); }
    Writer(const Writer&) = delete;
    Writer& operator=(const Writer&) = delete;
    RingHead& head() const { return *static_cast<RingHead*>(memory_); }
    void writeWhenThereIsRoom(const std::vector<std::byte>& bytes) const {
        while (head().written.load() - head().taken.load() + bytes.size() > kRingBytes)
            std::this_thread::yield();
        write(bytes);
    }
    void write(const std::vector<std::byte>& bytes) const {
        std::uint64_t at = head().written.load();
        for (const std::byte byte : bytes)
            static_cast<std::byte*>(memory_)[kRingHeadBytes + at++ % kRingBytes] = byte;
        head().written.store(at, std::memory_order_release);
    }

private:
    void* memory_;
};

bool moved(RingReader& ring, FrameReader& reader) {
    return ring.take([&](std::span<const std::byte> bytes) {
        reader.feed(bytes);
        return true;
    });
}

TEST(Ring, CarriesFramesAroundItsEnd) {
    RingReader ring;
    Writer writer(ring);
    FrameReader reader;
    const std::vector<std::byte> payload(1u << 20, std::byte{7});
    const auto frame = encodeFrame(Type::Fault, payload);
    for (int i = 0; i < 20; ++i) {  // more than fits at once
        writer.write(frame);
        while (moved(ring, reader)) {
        }
        const auto received = reader.next();
        ASSERT_TRUE(received.has_value());
        EXPECT_EQ(copyOf(received->payload), payload);
    }
    EXPECT_EQ(writer.head().taken.load(), 20 * frame.size());
    EXPECT_FALSE(ring.nonsense());
}

TEST(Ring, DropsWhatIsSkipped) {
    RingReader ring;
    Writer writer(ring);
    FrameReader reader;
    writer.write(encodeFrame(Type::Done, {}));
    ring.skip();
    EXPECT_FALSE(moved(ring, reader));
    EXPECT_EQ(writer.head().taken.load(), writer.head().written.load());
}

TEST(Ring, BelievesNoAgentThatClaimsMoreThanThereIsRoomFor) {
    RingReader ring;
    Writer writer(ring);
    FrameReader reader;
    writer.head().written.store(kRingBytes + 1);
    EXPECT_FALSE(moved(ring, reader));
    EXPECT_TRUE(ring.nonsense());
}

TEST(Ring, CannotBeShrunkByTheAgent) {
    const RingReader ring;
    EXPECT_NE(ftruncate(ring.file(), 0), 0);
}

/// Numbered frames go through the ring, far more than it holds, before one of them is looked at.
class BacklogTest : public testing::Test {
protected:
    static constexpr int kFrames = 500;

    static std::vector<std::byte> payload(int number) {
        return std::vector<std::byte>(100'000, static_cast<std::byte>(number % 251));
    }
    void fill(Backlog& backlog) {
        const Writer& ring = writers_.emplace_back(backlog.ringFile());
        for (int i = 0; i < kFrames; ++i)
            ring.writeWhenThereIsRoom(encodeFrame(Type::Fault, payload(i)));
    }
    static void expectAll(Backlog& backlog) {
        FrameReader reader;
        int number = 0;
        while (backlog.take(reader))
            while (const auto frame = reader.next())
                ASSERT_TRUE(copyOf(frame->payload) == payload(number++));
        EXPECT_EQ(reader.error(), "");
        EXPECT_EQ(number, kFrames);
        EXPECT_TRUE(backlog.isEmpty());
    }

    std::list<Writer> writers_;
};

TEST_F(BacklogTest, KeepsInMemoryWhatTheRecorderHasNotTaken) {
    Backlog backlog("/nowhere");
    backlog.start();
    fill(backlog);
    backlog.end();
    expectAll(backlog);
}

TEST_F(BacklogTest, KeepsInAFileWhatDoesNotFitIntoMemory) {
    Backlog backlog(testing::TempDir(), 1u << 20);
    backlog.start();
    fill(backlog);
    backlog.end();
    expectAll(backlog);
}

TEST_F(BacklogTest, LetsTheTrainingWaitWhereThereIsNoRoom) {
    Backlog backlog("/nowhere", 1u << 20);
    backlog.start();
    FrameReader reader;
    int number = 0;
    std::thread training([&] { fill(backlog); });
    while (number < kFrames) {
        while (backlog.take(reader))
            while (const auto frame = reader.next())
                EXPECT_TRUE(copyOf(frame->payload) == payload(number++));
        std::this_thread::yield();
    }
    training.join();
    backlog.end();
    EXPECT_TRUE(backlog.isEmpty());
}

TEST_F(BacklogTest, ThrowsAwayWhatComesAfterItsEnd) {
    Backlog backlog("/nowhere");
    backlog.start();
    backlog.end();
    fill(backlog);
    EXPECT_TRUE(backlog.isEmpty());
}

TEST(FrameReader, RefusesWhatIsNoFrame) {
    EXPECT_NE(errorAfterChange(0, 0x00).find("not a Highwater"), std::string::npos);
    EXPECT_NE(errorAfterChange(6, 200).find("unknown record type 200"), std::string::npos);
    EXPECT_NE(errorAfterChange(11, 0xff).find("bytes"), std::string::npos);
}

TEST(FrameReader, NamesBothVersions) {
    const std::string error = errorAfterChange(4, 9);
    EXPECT_NE(error.find("version 9"), std::string::npos) << error;
    EXPECT_NE(error.find("version " + std::to_string(kVersion)), std::string::npos) << error;
}

TEST(Records, OpComesBackAsItWasSent) {
    OpRecord op;
    ASSERT_TRUE(decode(Payload(opPayload().get()), op));
    EXPECT_EQ(op.id, 7);
    EXPECT_EQ(op.seq, 40);
    EXPECT_EQ(op.durationNs, 250);
    EXPECT_EQ(op.workspace, 64);
    EXPECT_EQ(op.live, 4096);
    EXPECT_EQ(op.layer, 2);
    EXPECT_EQ(op.stack, 3);
    EXPECT_EQ(op.phase, 2);
    EXPECT_EQ(op.random, 1);
    EXPECT_EQ(op.name, "aten::mm");
    EXPECT_EQ(op.overload, "out");
    ASSERT_EQ(op.inputs.size(), 2u);
    EXPECT_EQ(op.inputs[1].tensor, 6);
    EXPECT_EQ(op.inputs[1].version, 3);
    ASSERT_EQ(op.outputs.size(), 1u);
    EXPECT_TRUE(op.outputs[0].makes);
    ASSERT_EQ(op.writes.size(), 1u);
    EXPECT_EQ(op.writes[0].before, 2);
}

TEST(Records, EveryShorterOrLongerPayloadIsRefused) {
    std::vector<std::byte> bytes = opPayload().get();
    for (std::size_t length = 0; length < bytes.size(); ++length) {
        OpRecord op;
        EXPECT_FALSE(decode(Payload(bytes.data(), length), op)) << length << " bytes";
    }
    bytes.push_back(std::byte{0});
    OpRecord op;
    EXPECT_FALSE(decode(Payload(bytes), op));
}

TEST(Records, HugeCountsDoNotAllocate) {
    Bytes bytes;
    bytes << std::uint8_t{0} << I64{0} << std::uint32_t{0xffffffff};
    CategoryRecord category;
    EXPECT_FALSE(decode(Payload(bytes.get()), category));
    EXPECT_LT(category.storages.capacity(), 1000u);
    Bytes text;
    text << std::uint32_t{0x7fffffff};
    FaultRecord fault;
    EXPECT_FALSE(decode(Payload(text.get()), fault));
}

TEST(Records, TensorHasAsManyStridesAsSizes) {
    Bytes bytes;
    bytes << I64{1} << I64{2} << I64{-1} << I64{3} << std::string("float32") << std::uint16_t{2}
          << I64{4} << I64{5} << I64{5} << I64{1};
    TensorRecord tensor;
    ASSERT_TRUE(decode(Payload(bytes.get()), tensor));
    EXPECT_EQ(tensor.sizes, (std::vector<I64>{4, 5}));
    EXPECT_EQ(tensor.strides, (std::vector<I64>{5, 1}));
    bytes << I64{1};
    EXPECT_FALSE(decode(Payload(bytes.get()), tensor));
}

TEST(Records, ArbitraryBytesNeverCrash) {
    std::mt19937 random(5);
    int accepted = 0;
    for (int round = 0; round < 20000; ++round) {
        std::vector<std::byte> bytes(random() % 120);
        for (auto& byte : bytes) byte = static_cast<std::byte>(random() % 4 == 0 ? random() : 0);
        OpRecord op;
        StorageRecord storage;
        StepEndRecord end;
        TensorRecord tensor;
        accepted += decode(Payload(bytes), op) + decode(Payload(bytes), storage) +
                    decode(Payload(bytes), end) + decode(Payload(bytes), tensor);
        EXPECT_LE(end.tensors.size() * sizeof(I64), bytes.size());
        EXPECT_LE(op.inputs.size() * 12, bytes.size());
    }
    EXPECT_LT(accepted, 20000);
}

TEST(Records, ReadRescues) {
    Bytes bytes;
    for (const I64 each : {I64{4}, I64{7}, I64{1}, I64{4096}, I64{65536}, I64{9}}) bytes << each;
    Bytes whole = bytes;
    whole << std::string("aten::mm");
    LiveRescueRecord rescue;
    ASSERT_TRUE(decode(whole.get(), rescue));
    EXPECT_EQ(rescue.step, 4);
    EXPECT_EQ(rescue.allocations, 7);
    EXPECT_EQ(rescue.refused, 1);
    EXPECT_EQ(rescue.bytes, 4096);
    EXPECT_EQ(rescue.freed, 65536);
    EXPECT_EQ(rescue.evictions, 9);
    EXPECT_EQ(rescue.op, "aten::mm");
    EXPECT_FALSE(decode(bytes.get(), rescue));
    whole << std::uint8_t{0};
    EXPECT_FALSE(decode(whole.get(), rescue));
}

TEST(Records, ReadMismatches) {
    Bytes bytes;
    bytes << I64{84} << I64{2} << I64{262144} << std::uint8_t{1} << std::string("aten::mul.Tensor");
    bytes << std::string("blocks.3");
    LiveMismatchRecord mismatch;
    EXPECT_FALSE(decode(bytes.get(), mismatch));
    bytes << std::string();
    ASSERT_TRUE(decode(bytes.get(), mismatch));
    EXPECT_EQ(mismatch.op, 84);
    EXPECT_EQ(mismatch.program, 2);
    EXPECT_EQ(mismatch.bytes, 262144);
    EXPECT_EQ(mismatch.kind, MismatchKind::UnseenWriter);
    EXPECT_EQ(mismatch.name, "aten::mul.Tensor");
    EXPECT_EQ(mismatch.layer, "blocks.3");
    Bytes unknown;
    unknown << I64{84} << I64{0} << I64{1} << std::uint8_t{9} << std::string() << std::string()
            << std::string();
    EXPECT_FALSE(decode(unknown.get(), mismatch));
}

}  // namespace
}  // namespace hw::profiler::wire
