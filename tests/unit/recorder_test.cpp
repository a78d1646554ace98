// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include "core/memory/evaluate.h"
#include "core/session/access.h"
#include "core/session/arguments.h"
#include "core/session/call_stacks.h"
#include "core/session/session.h"
#include "profiler/attach/record.h"
#include "profiler/recorder/assembler.h"
#include "tests/unit/recorder_frames.h"

namespace hw::profiler {
namespace {

/// What happens to memory of the device.
wire::Activity onDevice(wire::MemoryDetail detail, I64 begin, I64 bytes, I64 address,
                        std::uint16_t flags) {
    wire::Activity made;
    made.kind = static_cast<std::uint8_t>(wire::ActivityKind::Memory);
    made.detail = static_cast<std::uint8_t>(detail);
    made.flags = flags;
    made.begin = made.end = begin;
    made.value = bytes;
    made.address = address;
    made.extra = 3;
    return made;
}

TEST_F(Recorder, AFinishedStepBecomesAGraph) {
    beginStep();
    EXPECT_TRUE(op(1, 2, 1, 0, 1, false, 1, 0));  // in place
    ok(Type::Free, I64{0}, I64{3});
    end(4, {1});
    EXPECT_FALSE(fs::exists(path())) << "a provisional end is not the end";
    ok(Type::StepConfirmed);
    ASSERT_TRUE(assembler_->finish());
    EXPECT_EQ(assembler_->steps(), 1);
    EXPECT_EQ(assembler_->opsOfLastStep(), 2);

    auto session = core::Session::open(path());
    ASSERT_TRUE(session);
    const auto steps = session->steps();
    ASSERT_TRUE(steps);
    ASSERT_EQ(steps->size(), 1u);
    EXPECT_EQ(steps->front().allocatorPeakBytes, 300);
    const auto graph = core::loadGraph(*session, 0);
    ASSERT_TRUE(graph) << graph.error().what;
    EXPECT_EQ(graph->ops.size(), 2u);
    ASSERT_EQ(graph->storages.size(), 2u);
    EXPECT_TRUE(graph->storages[0].isConstant());
    EXPECT_EQ(graph->storages[0].category, core::Category::Input);
    EXPECT_FALSE(graph->storages[0].aliveAtEnd);
    EXPECT_EQ(graph->storages[1].creator, 0);
    EXPECT_EQ(graph->storages[1].writers.size(), 1u);
    EXPECT_EQ(graph->storages[1].category, core::Category::Temporary);
    const auto judged = core::evaluate(*graph, core::baselineSchedule(*graph));
    EXPECT_TRUE(judged.valid) << judged.why;
    EXPECT_EQ(judged.peak, core::Bytes(216));
}

TEST_F(Recorder, OpsKeepTheCallStackThatLedToThem) {
    introduce();
    EXPECT_TRUE(storage(0, 0, 100, -1));
    EXPECT_TRUE(tensor(0, 0, -1));
    ok(Type::SourceFrame, I64{0}, I64{9}, std::uint8_t{0}, std::string("/home/me/train.py"),
       std::string("main"));
    ok(Type::SourceFrame, I64{1}, I64{77}, std::uint8_t{1}, std::string("/lib/torch/nn.py"),
       std::string("relu"));
    ok(Type::StackNode, I64{0}, I64{-1}, I64{0});
    ok(Type::StackNode, I64{1}, I64{0}, I64{1});
    ok(Type::StepStart, I64{1}, I64{500}, I64{100});
    EXPECT_TRUE(storage(1, 1, 100, 0));
    EXPECT_TRUE(tensor(1, 1, 0));
    stack_ = 1;
    EXPECT_TRUE(op(0, 1, 0, 0, 1, true));
    end(2, {1});
    ok(Type::StepConfirmed);
    ASSERT_TRUE(assembler_->finish());
    auto session = core::Session::open(path());
    ASSERT_TRUE(session);
    const auto stacks = core::CallStacks::load(*session);
    ASSERT_TRUE(stacks) << stacks.error().what;
    ASSERT_EQ(stacks->frames(stacks->ofOp(0)).size(), 2u);
    EXPECT_EQ(stacks->frames(stacks->ofOp(0)).back()->function, "relu");
    EXPECT_EQ(core::frameText(*stacks->line(stacks->ofStorage(1))), "train.py:9 main")
        << "the innermost line outside of the framework";
    EXPECT_EQ(stacks->line(stacks->ofStorage(0)), nullptr) << "no op made it";
}

TEST_F(Recorder, RefusesStacksOfUnknownFrames) {
    introduce();
    EXPECT_FALSE(send(Type::StackNode, I64{0}, I64{-1}, I64{0}));
}

TEST_F(Recorder, WhatAGpuDidGoesToItsOps) {
    const auto activity = [](wire::ActivityKind kind, std::uint32_t correlation, I64 begin, I64 end,
                             I64 value) {
        wire::Activity made;
        made.kind = static_cast<std::uint8_t>(kind);
        made.correlation = correlation;
        made.stream = kind == wire::ActivityKind::Api ? 1 : 7;
        made.begin = begin, made.end = end, made.value = value;
        made.name = 1;
        return made;
    };
    const auto send = [&](std::initializer_list<wire::Activity> list) { return activities(list); };
    using wire::ActivityKind;
    ok(Type::Clock, I64{100'000}, I64{0}, I64{10});  // the device's clock is ahead, and slow
    ok(Type::Name, I64{1}, std::string("gemm"));
    beginStep();  // its op runs from 1000 to 1050 on thread 1
    EXPECT_TRUE(send({activity(ActivityKind::External, 5, 0, 0, 1000),
                      activity(ActivityKind::Kernel, 5, 101'100, 101'200, 0),
                      activity(ActivityKind::Api, 6, 101'020, 101'030, 0)}));
    end(2, {1});
    ok(Type::StepConfirmed);
    // What a step's kernels took comes later than the step's end; nothing tells whose the last is.
    EXPECT_TRUE(send({activity(ActivityKind::Copy, 6, 101'300, 101'400, 64),
                      activity(ActivityKind::Kernel, 9, 102'000, 102'100, 0),
                      activity(ActivityKind::Kernel, 9, 900'000, 900'100, 0)}));
    ASSERT_TRUE(assembler_->finish());
    auto session = core::Session::open(path());
    ASSERT_TRUE(session);
    const auto figures = [&](const char* sql) {
        core::Statement statement(core::databaseOf(*session), sql);
        std::vector<std::optional<I64>> row;
        while (statement.step()) row.push_back(statement.optionalInteger(0));
        return row;
    };
    using Row = std::vector<std::optional<I64>>;
    EXPECT_EQ(figures("SELECT op FROM kernels ORDER BY begin_ns"), (Row{0, std::nullopt}));
    EXPECT_EQ(figures("SELECT begin_ns FROM kernels WHERE name = 'gemm'"), (Row{1100, 2000}));
    EXPECT_EQ(figures("SELECT op FROM copies WHERE bytes = 64"), Row{0})
        << "by the thread and the time of its call";
    EXPECT_EQ(figures("SELECT device_ns FROM ops"), Row{100});
    EXPECT_FALSE(send({activity(static_cast<ActivityKind>(99), 1, 0, 0, 0)})) << "an unknown kind";
}

TEST_F(Recorder, CallsThatAreToldAtOnceWaitForRecordsOfWhatCameBefore) {
    using wire::MemoryDetail;
    const auto memory = [](MemoryDetail detail, I64 begin, I64 mebibytes, std::uint16_t flags) {
        return onDevice(detail, begin, mebibytes << 20, mebibytes << 30, flags);
    };
    ok(Type::Clock, I64{100'000}, I64{0}, I64{10});
    beginStep();
    EXPECT_TRUE(activities({memory(MemoryDetail::Map, 1020, 2, wire::kActivityHostClock),
                            memory(MemoryDetail::Unmap, 1030, 2, wire::kActivityHostClock)}));
    I64 seq = 2;
    for (I64 step = 1; step <= 3; ++step) {
        end(seq, {0, 1});
        ok(Type::StepConfirmed);
        ok(Type::StepStart, ++seq, I64{2000 * step}, I64{200});
        EXPECT_TRUE(
            op(step, seq, 1, static_cast<int>(step) - 1, 1, false, 1, static_cast<int>(step) - 1));
        ++seq;
    }
    EXPECT_TRUE(activities({memory(MemoryDetail::Allocate, 101'010, 20, 0)}));
    end(seq, {0, 1});
    ok(Type::StepConfirmed);
    ASSERT_TRUE(assembler_->finish());
    EXPECT_EQ(reserved("MAX(maximum)"), 22 << 20);
}

TEST_F(Recorder, ASegmentThatIsToldTwiceCountsOnce) {
    using wire::MemoryDetail;
    const auto memory = [](MemoryDetail detail, I64 begin, I64 address, std::uint16_t flags) {
        return onDevice(detail, begin, 20 << 20, address, flags);
    };
    constexpr std::uint16_t kCall = wire::kActivityHostClock;
    ok(Type::Clock, I64{100'000}, I64{0}, I64{10});
    beginStep();
    // One is told by its call first, the other by CUPTI's record; then both go, and one comes
    // again.
    EXPECT_TRUE(activities({memory(MemoryDetail::Map, 1010, 1 << 30, kCall),
                            memory(MemoryDetail::Allocate, 101'011, 1 << 30, 0),
                            memory(MemoryDetail::Allocate, 101'012, 2 << 20, 0),
                            memory(MemoryDetail::Map, 1013, 2 << 20, kCall),
                            memory(MemoryDetail::Unmap, 1014, 1 << 30, kCall),
                            memory(MemoryDetail::Release, 101'015, 1 << 30, 0),
                            memory(MemoryDetail::Release, 101'016, 2 << 20, 0),
                            memory(MemoryDetail::Unmap, 1017, 2 << 20, kCall),
                            memory(MemoryDetail::Map, 1018, 1 << 30, kCall),
                            memory(MemoryDetail::Allocate, 101'019, 1 << 30, 0)}));
    end(2, {0, 1});
    ok(Type::StepConfirmed);
    ASSERT_TRUE(assembler_->finish());
    EXPECT_EQ(reserved("MAX(maximum)"), 40 << 20);
    EXPECT_EQ(reserved("MIN(minimum)"), 0);
}

TEST_F(Recorder, WhatTheEndOfAStepShowsToHaveBeenThereIsAConstantFromItsStartOn) {
    beginStep();
    EXPECT_TRUE(storage(2, 1, 1000, -1));
    end(2, {1});
    ok(Type::StepConfirmed);
    EXPECT_FALSE(storage(3, 1, 1000, -1)) << "that step is over";
    ASSERT_TRUE(assembler_->finish());
    auto session = core::Session::open(path());
    ASSERT_TRUE(session);
    const auto graph = core::loadGraph(*session, 0);
    ASSERT_TRUE(graph) << graph.error().what;
    ASSERT_EQ(graph->storages.size(), 3u);
    EXPECT_EQ(graph->constantBytes(), core::Bytes(1100));
    const auto judged = core::evaluate(*graph, core::baselineSchedule(*graph));
    EXPECT_TRUE(judged.valid) << judged.why;
    EXPECT_EQ(judged.peak, core::Bytes(1216));
}

TEST_F(Recorder, TwoProcessesShareASessionAndNothingElse) {
    const auto shared = std::make_shared<SharedSession>(path());
    auto other = std::make_unique<Assembler>(shared);
    assembler_ = std::make_unique<Assembler>(shared);
    for (int process = 0; process < 2; ++process, std::swap(assembler_, other)) {
        beginStep();  // storage 0 outlives the step
        end(2, {0, 1});
        ok(Type::Gap, I64{0}, I64{0}, std::string("something"), std::to_string(process));
    }
    for (int process = 0; process < 2; ++process, std::swap(assembler_, other)) {
        ok(Type::StepConfirmed);
        ASSERT_TRUE(assembler_->finish());
    }
    assembler_.reset(), other.reset();
    auto session = core::Session::open(path());
    ASSERT_TRUE(session);
    const auto steps = session->steps();
    ASSERT_TRUE(steps);
    ASSERT_EQ(steps->size(), 2u);
    for (std::int64_t i = 0; i < 2; ++i) {
        EXPECT_EQ((*steps)[i].process, i + 1);
        EXPECT_EQ((*steps)[i].firstSeq, i * core::kIdsOfProcess + 1);
        const auto graph = core::loadGraph(*session, i);
        ASSERT_TRUE(graph) << graph.error().what;
        EXPECT_EQ(graph->storages.size(), 2u) << "none of the other process's";
        const auto ops = session->ops(i);
        ASSERT_TRUE(ops);
        ASSERT_EQ(ops->size(), 1u);
        EXPECT_EQ(ops->front().args, "{\"a\":[{\"t\":" + std::to_string(i * core::kIdsOfProcess) +
                                         "},\"{\\\"t\\\":7}\"],\"k\":{}}");
        EXPECT_EQ((*session->gaps())[i].step, i);
    }
    EXPECT_EQ(session->counts()->layers, 1);
    EXPECT_EQ(session->processes()->size(), 2u);
}

TEST(Arguments, OnlyTensorsAreMoved) {
    EXPECT_EQ(core::withTensorsMoved(
                  R"({"a":[{"t":3},[{"t":-1},7],"{\"t\":5}",null,true,1.5,{"f":"0x1p+0"}],)"
                  R"("k":{"t":5,"out":{"t":4},"dtype":{"dtype":"float32"}}})",
                  100),
              R"({"a":[{"t":103},[{"t":99},7],"{\"t\":5}",null,true,1.5,{"f":"0x1p+0"}],)"
              R"("k":{"t":5,"out":{"t":104},"dtype":{"dtype":"float32"}}})");
    EXPECT_EQ(core::withTensorsMoved(R"({"a":["\u0001\n\\é"],"k":{}})", 100),
              R"({"a":["\u0001\n\\é"],"k":{}})");
    EXPECT_EQ(core::withTensorsMoved("", 100), "");
    EXPECT_EQ(core::withTensorsMoved(R"({"a":[{"t":3)", 100), R"({"a":[{"t":3)") << "cut short";
}

TEST(DeviceClock, RunsStraightBetweenTwoMoments) {
    DeviceClock clock;
    clock.add({3'000, 1'200, 40});  // the order of arrival does not matter
    clock.add({1'000, 200, 10});
    EXPECT_EQ(clock.toHost(2'000), 700);
    EXPECT_EQ(clock.toHost(500), -300);
    EXPECT_EQ(clock.toHost(4'000), 2'200);
    EXPECT_EQ(clock.describe(),
              "{\"offset_ns\":-800,\"drift_ppb\":-500000000,\"uncertainty_ns\":40,\"moments\":2}");
}

TEST_F(Recorder, AStreamThatBreaksOffKeepsTheStepThatHadEnded) {
    beginStep();
    end(2, {0, 1});
    EXPECT_TRUE(storage(2, 2, 50, 1));  // the next step has begun
    EXPECT_TRUE(tensor(2, 2, 1));
    EXPECT_TRUE(op(1, 2, 1, 0, 2, true));
    ASSERT_TRUE(assembler_->finish());
    auto session = core::Session::open(path());
    ASSERT_TRUE(session);
    const auto ops = session->ops(0);
    ASSERT_TRUE(ops);
    EXPECT_EQ(ops->size(), 1u);
    const auto counts = session->counts();
    ASSERT_TRUE(counts);
    EXPECT_EQ(counts->storages, 2) << "nothing of the unfinished step is written";
}

TEST_F(Recorder, AConstantThatALaterStepReadsFirstIsAnInputToo) {
    introduce();
    EXPECT_TRUE(storage(0, 0, 100, -1) && tensor(0, 0, -1));
    EXPECT_TRUE(storage(1, 1, 100, -1) && tensor(1, 1, -1));
    I64 seq = 2;
    for (const I64 step : {0, 1}) {  // of two networks in turn, each with its own data
        ok(Type::StepStart, seq, I64{500}, I64{200});
        EXPECT_TRUE(storage(2 + step, seq, 100, step) && tensor(2 + step, 2 + step, step));
        EXPECT_TRUE(op(step, seq, step, 0, 2 + step, true));
        end(++seq, {0, 1});
        ok(Type::StepConfirmed);
    }
    ASSERT_TRUE(assembler_->finish());
    auto session = core::Session::open(path());
    ASSERT_TRUE(session);
    const auto graph = core::loadGraph(*session, 1);
    ASSERT_TRUE(graph) << graph.error().what;
    for (const int constant : {0, 1})
        EXPECT_EQ(graph->storages[constant].category, core::Category::Input) << constant;
}

TEST_F(Recorder, GatheredParametersAreACategoryOfTheirOwn) {
    introduce();
    for (const I64 id : {0, 1}) EXPECT_TRUE(storage(id, id, 100, -1) && tensor(id, id, -1));
    const auto parameters = [&] {
        ok(Type::Category, static_cast<std::uint8_t>(core::Category::Parameter), I64{0},
           std::uint32_t{2}, I64{0}, I64{1});
    };
    parameters();
    ok(Type::StepStart, I64{2}, I64{500}, I64{100});
    opName_ = "fsdp::split_with_sizes_copy";
    EXPECT_TRUE(op(0, 2, 0, 0, 1, false, 1, 0));
    parameters();  // the module has them as what it had before
    end(3, {0, 1});
    ok(Type::StepConfirmed);
    ASSERT_TRUE(assembler_->finish());
    const auto session = core::Session::open(path());
    ASSERT_TRUE(session);
    const auto graph = core::loadGraph(*session, 0);
    ASSERT_TRUE(graph) << graph.error().what;
    EXPECT_EQ(graph->storages[0].category, core::Category::Parameter);
    EXPECT_EQ(graph->storages[1].category, core::Category::GatheredParameter);
}

TEST_F(Recorder, ALaterEndOfTheSameStepReplacesTheEarlier) {
    beginStep();
    end(2, {0, 1});
    EXPECT_TRUE(op(1, 2, 1, 0, 1, false, 1, 0));  // a second optimizer
    end(3, {0, 1});
    ok(Type::StepConfirmed);
    ASSERT_TRUE(assembler_->finish());
    EXPECT_EQ(assembler_->steps(), 1);
    EXPECT_EQ(assembler_->opsOfLastStep(), 2);
}

TEST_F(Recorder, ANewStartTurnsWhatWasMadeBeforeIntoConstants) {
    beginStep();
    ok(Type::StepStart, I64{2}, I64{600}, I64{200});
    EXPECT_TRUE(storage(2, 2, 50, 1));
    EXPECT_TRUE(tensor(2, 2, 1));
    EXPECT_TRUE(op(1, 2, 1, 0, 2, true));
    end(3, {0, 1, 2});
    ASSERT_TRUE(assembler_->finish());
    auto session = core::Session::open(path());
    ASSERT_TRUE(session);
    const auto graph = core::loadGraph(*session, 0);
    ASSERT_TRUE(graph) << graph.error().what;
    EXPECT_EQ(graph->ops.size(), 1u);
    EXPECT_TRUE(graph->storages[1].isConstant());
}

TEST_F(Recorder, ContentsOfConstantsAreKeptAndOthersAreNot) {
    introduce();
    EXPECT_TRUE(storage(0, 0, 4, -1));
    EXPECT_TRUE(tensor(0, 0, -1));
    ok(Type::StepStart, I64{1}, I64{500}, I64{4});
    ok(Type::Contents, I64{1}, I64{0}, I64{4}, I64{0}, std::int16_t{7});
    EXPECT_TRUE(send(Type::Contents, I64{1}, I64{0}, I64{4}, I64{2}, std::int16_t{8}));
    ok(Type::Generator, I64{1}, I64{0}, std::string("cpu"), std::int32_t{77});
    EXPECT_TRUE(storage(1, 1, 8, 0));
    EXPECT_TRUE(tensor(1, 1, 0));
    EXPECT_TRUE(op(0, 1, 0, 0, 1, true));
    end(2, {0, 1});
    ASSERT_TRUE(assembler_->finish());
    auto session = core::Session::open(path());
    ASSERT_TRUE(session);
    const auto data = session->contents(0, 0);
    ASSERT_TRUE(data);
    EXPECT_EQ(data->size(), 4u);
    EXPECT_EQ((*data)[2], std::byte{8});
    const auto generators = session->generators(0);
    ASSERT_TRUE(generators);
    ASSERT_EQ(generators->size(), 1u);
    EXPECT_EQ(generators->front().state.size(), 4u);
}

TEST_F(Recorder, ContradictionsAreRefused) {
    EXPECT_FALSE(storage(0, 0, 100, -1)) << "before the introduction";
    beginStep();
    EXPECT_FALSE(storage(1, 9, 100, -1)) << "the id is taken";
    EXPECT_FALSE(storage(5, 0, 100, -1)) << "in the past";
    EXPECT_FALSE(storage(5, 9, -1, -1)) << "negative size";
    EXPECT_FALSE(tensor(9, 77, -1)) << "no such storage";
    EXPECT_FALSE(op(5, 9, 0, 0, 1, false)) << "op ids have no holes";
    EXPECT_FALSE(op(1, 9, 0, 3, 1, false)) << "a version that never was";
    EXPECT_FALSE(op(1, 10, 55, 0, 1, false)) << "unknown tensor";
    EXPECT_FALSE(send(Type::Free, I64{44}, I64{20})) << "unknown storage";
    EXPECT_FALSE(send(Type::Config, I64{0}, I64{0})) << "from the wrong side";
    EXPECT_FALSE(send(Type::Contents, I64{1}, I64{0}, I64{999}, I64{0})) << "wrong size";
    EXPECT_FALSE(send(Type::Op, I64{1})) << "cut short";
}

TEST_F(Recorder, NothingIsReadAfterItsRelease) {
    beginStep();
    ok(Type::Free, I64{0}, I64{2});
    EXPECT_FALSE(op(1, 3, 0, 0, 1, false));
    EXPECT_FALSE(send(Type::Free, I64{0}, I64{4}));
}

TEST_F(Recorder, RecordSaysWhyItCannotStart) {
    const auto quiet = [](const std::string&) {};
    RecordOptions options;
    EXPECT_EQ(record(options, quiet).error().code, core::ErrorCode::Usage);
    options.command = {"/bin/true"};
    options.steps = 0;
    EXPECT_EQ(record(options, quiet).error().code, core::ErrorCode::Usage);
    options.steps = 1;
    options.output = (folder_ / "nowhere" / "s.hws").string();
    EXPECT_EQ(record(options, quiet).error().code, core::ErrorCode::BadInput);
    options.output = folder_.string();
    EXPECT_EQ(record(options, quiet).error().code, core::ErrorCode::BadInput) << "it exists";
}

}  // namespace
}  // namespace hw::profiler
