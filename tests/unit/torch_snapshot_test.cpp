// SPDX-License-Identifier: MIT
// The expected figures of the samples come from Python's own pickle.
#include "core/import/torch_snapshot.h"

#include <fstream>
#include <utility>
#include <vector>

#include "core/import/snapshot_frames.h"
#include "core/session/annotations.h"
#include "core/session/call_stacks.h"
#include "core/session/origins.h"
#include "core/session/shortages.h"
#include "tests/unit/expected.h"

namespace hw::core {
namespace {

using test::figure;
using test::hasGap;

// --- pickles of the first protocol, by hand

std::string num(std::int64_t value) {
    return "I" + std::to_string(value) + "\n";
}
std::string str(const std::string& text) {
    return "V" + text + "\n";
}
std::string list(const std::vector<std::string>& items) {
    std::string text = "(";
    for (const std::string& item : items) text += item;
    return text + "l";
}
std::string dict(const std::vector<std::pair<std::string, std::string>>& pairs) {
    std::string text = "(";
    for (const auto& [key, value] : pairs) text += str(key) + value;
    return text + "d";
}
std::string block(std::int64_t size, const std::string& state,
                  const std::vector<std::pair<std::string, std::string>>& more = {}) {
    std::vector<std::pair<std::string, std::string>> pairs{{"size", num(size)},
                                                           {"state", str(state)}};
    pairs.insert(pairs.end(), more.begin(), more.end());
    return dict(pairs);
}
std::string segment(int device, const std::vector<std::string>& blocks, std::int64_t total) {
    return dict({{"device", num(device)},
                 {"address", "L9223372036854775808L\n"},
                 {"total_size", num(total)},
                 {"blocks", list(blocks)}});
}
std::string event(const std::string& action, std::int64_t address, std::int64_t size,
                  std::int64_t timeUs = -1) {
    std::vector<std::pair<std::string, std::string>> pairs{
        {"action", str(action)}, {"addr", num(address)}, {"size", num(size)}};
    if (timeUs >= 0) pairs.emplace_back("time_us", num(timeUs));
    return dict(pairs);
}

std::string frame(const char* file, int line, const char* name) {
    return dict({{"filename", str(file)}, {"line", num(line)}, {"name", str(name)}});
}

class TorchSnapshot : public testing::Test {
protected:
    Result<Session> import(const std::string& pickle) {
        std::ofstream(folder_ / "s.pickle", std::ios::binary) << pickle << ".";
        return openAny(folder_ / "s.pickle");
    }
    void refused(const std::string& pickle, const std::string& why) {
        const auto session = import(pickle);
        ASSERT_FALSE(session) << why;
        EXPECT_EQ(session.error().code, ErrorCode::BadInput);
        EXPECT_NE(session.error().what.find(why), std::string::npos) << session.error().what;
    }
    test::TemporaryFolder folder_;
};

/// Of the public files; those of the samples lie beside them.
nlohmann::json figuresOf(const std::string& file) {
    if (test::dataName(file).starts_with("Samples")) return test::expectedOf(file);
    nlohmann::json figures{{"allocs", 2899},
                           {"frees_requested", 2574},
                           {"frees_completed", 2574},
                           {"storages", 2899 + 320},
                           {"freed_storages", 2574},
                           {"allocated_begin", 94326992},
                           {"allocated_peak", 597327488},
                           {"allocated_end", 408384288},
                           {"last_time", 0}};
    if (file.ends_with("empty-cache.pickle.gz"))
        figures.update(
            {{"layers", 245}, {"reserved_peak", 662700032}, {"reserved_end", 509607936}});
    else if (file.ends_with("expandable.pickle.gz"))
        figures.update(
            {{"layers", 243}, {"reserved_peak", 643825664}, {"reserved_end", 643825664}});
    else if (file.ends_with("no-free-requested.pickle.gz"))
        figures = {{"allocs", 520},
                   {"frees_requested", 0},
                   {"frees_completed", 520},
                   {"storages", 520 + 17},
                   {"freed_storages", 520},
                   {"allocated_begin", 466},
                   {"allocated_peak", 2255398132 + 466},
                   {"allocated_end", 466},
                   {"reserved_peak", 262144000},
                   {"reserved_end", 262144000},
                   {"last_time", 1759252852603702000}};
    else
        figures = {{"allocs", 6526},
                   {"frees_requested", 6305},
                   {"frees_completed", 6305},
                   {"storages", 6526 + 226 + 438},  // 438 were there before and are freed
                   {"freed_storages", 6305},
                   {"allocated_begin", 5095321600},
                   {"allocated_peak", 7013335044},
                   {"allocated_end", 6808535044},
                   {"reserved_peak", 7235174400},
                   {"reserved_end", 7235174400},
                   {"last_time", 1783874496022988000}};
    return figures;
}

class SnapshotFile : public testing::TestWithParam<std::string> {};

TEST_P(SnapshotFile, HasTheCountsOfPythonsReader) {
    auto session = openAny(GetParam());
    ASSERT_TRUE(session) << session.error().what;
    const nlohmann::json expected = figuresOf(GetParam());
    test::expectFigures(
        *session, expected,
        {{"allocs", "SELECT count(*) FROM memory_events WHERE kind = 'alloc'"},
         {"frees_requested", "SELECT count(*) FROM memory_events WHERE kind = 'free_requested'"},
         {"frees_completed", "SELECT count(*) FROM memory_events WHERE kind = 'free_completed'"},
         {"freed_storages", "SELECT count(*) FROM storages WHERE free_seq IS NOT NULL"},
         {"allocated_begin", "SELECT allocated_bytes FROM memory_events WHERE id = 0"},
         {"allocated_peak", "SELECT max(allocated_bytes) FROM memory_events"},
         {"reserved_peak", "SELECT max(reserved_bytes) FROM memory_events"},
         {"allocated_end",  // the requested sizes of the blocks in use
          "SELECT allocated_bytes FROM memory_events ORDER BY id DESC LIMIT 1"},
         {"reserved_end", "SELECT reserved_bytes FROM memory_events ORDER BY id DESC LIMIT 1"},
         {"last_time", "SELECT max(time_ns) FROM memory_events"}});
    EXPECT_EQ(figure(*session, "SELECT count(*) FROM memory_events WHERE kind = 'initial'"), 1);
    const auto counts = session->counts();
    EXPECT_EQ(counts->storages, expected["storages"].get<std::int64_t>())
        << "allocated in the history, or before it and in use";
    if (expected.contains("layers")) {
        EXPECT_EQ(counts->layers, expected["layers"].get<std::int64_t>());
    }
    for (const char* gap : {"ops", "start", "rounding"}) EXPECT_TRUE(hasGap(*session, gap)) << gap;
    EXPECT_EQ(hasGap(*session, "times"), expected["last_time"] == 0);
}
INSTANTIATE_TEST_SUITE_P(
    Data, SnapshotFile,
    testing::ValuesIn(test::dataFiles(
        {"torch-snapshot/before-history.pickle.gz", "torch-snapshot/empty-cache.pickle.gz",
         "torch-snapshot/expandable.pickle.gz", "torch-snapshot/no-free-requested.pickle.gz"})),
    test::dataNameOf);

TEST_P(SnapshotFile, EveryByteOfThePeakHasAnOrigin) {
    const auto session = openAny(GetParam());
    ASSERT_TRUE(session) << session.error().what;
    const auto stacks = CallStacks::load(*session);
    const auto recorded = loadRecordedMemory(*session);
    ASSERT_TRUE(stacks && recorded);
    const Bytes peak(figuresOf(GetParam())["allocated_peak"].get<std::int64_t>());
    ASSERT_EQ(recorded->devices.size(), 1u);
    EXPECT_EQ(recorded->devices[0].peak, peak);
    const auto atPeak = originsAtPeak(*recorded, *stacks);
    for (const OriginKey key :
         {OriginKey::Line, OriginKey::File, OriginKey::Function, OriginKey::Layer}) {
        Bytes sum;
        for (const OriginGroup& group : originsBy(key, recorded->graph, *stacks, atPeak, {})) {
            EXPECT_NE(group.name, "(not explained)");
            sum += group.peak;
        }
        EXPECT_EQ(sum, peak);
    }
    for (const OriginTree tree : {OriginTree::Program, OriginTree::Stack, OriginTree::Layer})
        EXPECT_EQ(originTree(tree, recorded->graph, *stacks, atPeak).bytes, peak);
}

TEST_F(TorchSnapshot, DevicesAreMergedByTime) {
    const auto session = import(
        dict({{"segments", list({segment(0, {block(100, "active_allocated")}, 4096),
                                 segment(1, {block(70, "inactive")}, 8192)})},
              {"device_traces",
               list({list({event("segment_alloc", 1, 4096, 10), event("alloc", 1, 60, 30)}),
                     list({event("alloc", 9, 70, 20), event("free_requested", 9, 70, 40)})})}}));
    ASSERT_TRUE(session) << session.error().what;
    const Session& imported = *session;
    EXPECT_EQ(figure(imported, "SELECT count(*) FROM devices"), 2);
    EXPECT_EQ(test::text(imported,
                         "SELECT group_concat(time_ns) FROM (SELECT time_ns FROM "
                         "memory_events WHERE kind <> 'initial' ORDER BY id)"),
              "10000,20000,30000,40000");
    EXPECT_EQ(test::text(imported,
                         "SELECT group_concat(reserved_bytes) FROM (SELECT * FROM "
                         "memory_events WHERE device = 0 ORDER BY id)"),
              "0,4096,4096");
    EXPECT_EQ(test::text(imported,
                         "SELECT group_concat(allocated_bytes) FROM (SELECT * FROM "
                         "memory_events WHERE device = 1 ORDER BY id)"),
              "0,70,0");
    EXPECT_FALSE(hasGap(imported, "times"));
}

TEST_F(TorchSnapshot, OldFormHasSegmentsOnlyAndHistories) {
    auto session = import(list(
        {segment(0,
                 {block(512, "active_allocated",
                        {{"history", list({dict({{"addr", num(4)}, {"real_size", num(500)}})})}}),
                  block(1024, "inactive"), block(256, "active_allocated")},
                 2048)}));
    ASSERT_TRUE(session) << session.error().what;
    EXPECT_EQ(figure(*session, "SELECT count(*) FROM memory_events WHERE kind = 'block'"), 2);
    EXPECT_EQ(figure(*session, "SELECT max(allocated_bytes) FROM memory_events"), 768);
    EXPECT_EQ(figure(*session, "SELECT address FROM storages WHERE id = 1"), INT64_MIN + 1536)
        << "a block of an old snapshot follows the one before it; addresses are unsigned";
    EXPECT_TRUE(hasGap(*session, "history"));
    EXPECT_FALSE(hasGap(*session, "times"));
}

TEST_F(TorchSnapshot, CallStacksTellTheLineOfAnAllocation) {
    const std::string frames = list(
        {frame("??", 0, "at::empty"), frame("/x/site-packages/torch/nn/linear.py", 114, "forward"),
         frame("/home/me/model.py", 31, "forward"), frame("/home/me/train.py", 7, "<module>")});
    const auto session = import(list({segment(
        0, {block(512, "active_allocated", {{"frames", frames}}), block(100, "active_allocated")},
        2048)}));
    ASSERT_TRUE(session) << session.error().what;
    const auto stacks = CallStacks::load(*session);
    ASSERT_TRUE(stacks) << stacks.error().what;
    ASSERT_EQ(stacks->frames(stacks->ofStorage(0)).size(), 4u);
    EXPECT_EQ(stacks->frames(stacks->ofStorage(0)).front()->function, "<module>");
    EXPECT_EQ(frameText(*stacks->line(stacks->ofStorage(0))), "model.py:31 forward");
    const auto recorded = loadRecordedMemory(*session);
    ASSERT_TRUE(recorded) << recorded.error().what;
    const auto groups =
        originsBy(OriginKey::Line, recorded->graph, *stacks, originsAtPeak(*recorded, *stacks), {});
    ASSERT_EQ(groups.size(), 2u);
    EXPECT_EQ(groups[0].name, "model.py:31 forward");
    EXPECT_EQ(groups[0].peak, Bytes(512));
    EXPECT_EQ(groups[1].peak, Bytes(100)) << "no stack is known";
    EXPECT_EQ(groups[1].frame, nullptr);
}

/// Of `traces` alone, one a device.
std::string history(const std::vector<std::vector<std::string>>& traces,
                    const std::vector<std::string>& segments = {}) {
    std::vector<std::string> lists;
    for (const auto& trace : traces) lists.push_back(list(trace));
    return dict({{"segments", list(segments)}, {"device_traces", list(lists)}});
}
std::int64_t peakOf(const Result<Session>& session) {
    return session ? figure(*session, "SELECT max(allocated_bytes) FROM memory_events") : -1;
}

TEST_F(TorchSnapshot, WhicheverFreeComesFirstCounts) {
    std::vector<std::string> requested, completed, both;
    for (int i = 0; i < 5; ++i) {
        for (auto* trace : {&requested, &completed, &both}) trace->push_back(event("alloc", 8, 20));
        requested.push_back(event("free_requested", 8, 20));
        completed.push_back(event("free_completed", 8, 20));
        both.push_back(event("free_requested", 8, 20));
        both.push_back(event("alloc", 99, 7));
        both.push_back(event("free_completed", 8, 20));
        both.push_back(event("free_completed", 99, 7));
    }
    for (const auto& trace : {requested, completed, both}) {
        const auto session = import(history({trace}));
        ASSERT_TRUE(session) << session.error().what;
        EXPECT_EQ(peakOf(session), 20) << "gone at the first of its frees";
        EXPECT_EQ(figure(*session, "SELECT count(*) FROM storages WHERE free_seq IS NULL"), 0);
        EXPECT_FALSE(hasGap(*session, "unseen"));
    }
}

TEST_F(TorchSnapshot, WhatIsFreedWithoutHavingBeenAllocatedWasThereBefore) {
    const auto session = import(history({{event("alloc", 50, 20), event("free_requested", 1, 40),
                                          event("free_completed", 1, 40), event("alloc", 60, 5)}}));
    ASSERT_TRUE(session) << session.error().what;
    EXPECT_EQ(test::text(*session, "SELECT group_concat(allocated_bytes) FROM memory_events"),
              "40,60,20,20,25");
    EXPECT_EQ(figure(*session, "SELECT bytes FROM storages WHERE id = 0"), 40);
    const auto recorded = loadRecordedMemory(*session);
    const auto stacks = CallStacks::load(*session);
    ASSERT_TRUE(recorded && stacks);
    const auto groups =
        originsBy(OriginKey::Line, recorded->graph, *stacks, originsAtPeak(*recorded, *stacks), {});
    ASSERT_EQ(groups.size(), 2u);
    EXPECT_EQ(groups[0].name, "(before the history)");
    EXPECT_EQ(groups[0].peak, Bytes(40));
    EXPECT_EQ(groups[1].peak, Bytes(20));
}

TEST_F(TorchSnapshot, AllocationsAndFreesThatAreMissingAreCountedAndSaid) {
    // The second allocation of an address ends the first; the second free of one ends what must
    // have been allocated since the first.
    auto session = import(history({{event("alloc", 8, 20), event("alloc", 8, 30)}}));
    ASSERT_TRUE(session) << session.error().what;
    EXPECT_EQ(peakOf(session), 30);
    EXPECT_TRUE(hasGap(*session, "unseen"));
    session = import(history({{event("free_completed", 8, 20), event("snapshot", 0, 0),
                               event("free_completed", 8, 30)}}));
    ASSERT_TRUE(session) << session.error().what;
    EXPECT_EQ(test::text(*session, "SELECT group_concat(allocated_bytes) FROM memory_events"),
              "20,30,30,0");
    EXPECT_TRUE(hasGap(*session, "unseen"));
    session = import(history({{event("alloc", 8, 20)}}, {segment(0, {block(64, "inactive")}, 64)}));
    ASSERT_TRUE(session) << session.error().what;
    EXPECT_TRUE(hasGap(*session, "levels")) << "the snapshot does not have what is never freed";
}

TEST_F(TorchSnapshot, PinnedHostMemoryIsADeviceOfItsOwn) {
    const std::string hostSegment = dict({{"address", num(500)},
                                          {"total_size", num(4096)},
                                          {"blocks", list({block(1024, "active_allocated")})}});
    const std::string hostTrace =
        list({event("segment_alloc", 500, 4096, 20), event("alloc", 500, 1000, 20)});
    auto session = import(
        dict({{"segments", list({segment(0, {}, 8192)})},
              {"device_traces",
               list({list({event("alloc", 1, 60, 10), event("free_requested", 1, 60, 30)})})},
              {"host_segments", list({hostSegment})},
              {"host_traces", hostTrace}}));
    ASSERT_TRUE(session) << session.error().what;
    const auto devices = recordedDevices(*session);
    ASSERT_TRUE(devices);
    ASSERT_EQ(devices->size(), 2u);
    EXPECT_EQ((*devices)[0].label, "host");
    EXPECT_EQ((*devices)[0].peak, Bytes(1000));
    EXPECT_EQ((*devices)[0].reserved, Bytes(4096));
    EXPECT_EQ((*devices)[1].label, "cuda:0");
    EXPECT_EQ((*devices)[1].peak, Bytes(60));
    EXPECT_EQ(loadRecordedMemory(*session)->device, "cuda:0") << "the host is not shown first";
    EXPECT_EQ(loadRecordedMemory(*session, RecordedDetail::Everything, "host")->storages, 1);
    // A recording of host memory alone has no device.
    session = import(dict({{"segments", list({})},
                           {"device_traces", list({})},
                           {"host_segments", list({hostSegment})},
                           {"host_traces", hostTrace}}));
    ASSERT_TRUE(session) << session.error().what;
    EXPECT_EQ(loadRecordedMemory(*session)->device, "host");
}

TEST_F(TorchSnapshot, EveryDeviceCanBeAskedFor) {
    const auto session = import(history(
        {{event("alloc", 1, 60, 10)}, {event("alloc", 1, 90, 5), event("alloc", 2, 9, 7)}}));
    ASSERT_TRUE(session) << session.error().what;
    const auto highest = loadRecordedMemory(*session);
    ASSERT_TRUE(highest);
    EXPECT_EQ(highest->device, "cuda:1");
    ASSERT_EQ(highest->devices.size(), 2u);
    EXPECT_EQ(highest->devices[0].peak, Bytes(60));
    EXPECT_EQ(highest->devices[1].events, 3) << "with what was there before";
    const auto other = loadRecordedMemory(*session, RecordedDetail::Peak, "cuda:0");
    ASSERT_TRUE(other);
    ASSERT_EQ(other->lifetimes.size(), 1u);
    EXPECT_EQ(other->graph.storages[0].bytes, Bytes(60));
    const auto none = loadRecordedMemory(*session, RecordedDetail::Peak, "cuda:7");
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, ErrorCode::Usage);
    EXPECT_NE(none.error().hint.find("cuda:0, cuda:1"), std::string::npos) << none.error().hint;
}

TEST_F(TorchSnapshot, AFailedAllocationTellsWhatWasAskedForAndWhatWasFree) {
    const std::string oom = dict({{"action", str("oom")},
                                  {"size", num(300)},
                                  {"device_free", num(7)},
                                  {"time_us", num(12)},
                                  {"frames", list({frame("/x/train.py", 10, "forward")})}});
    const auto session = import(history({{event("alloc", 8, 40, 11), oom}}));
    ASSERT_TRUE(session) << session.error().what;
    EXPECT_EQ(peakOf(session), 40) << "what failed takes no bytes";
    const auto shortages = loadShortages(*session);
    ASSERT_EQ(shortages.size(), 1u);
    EXPECT_EQ(shortages[0].device, "cuda:0");
    EXPECT_EQ(shortages[0].timeNs, 12'000);
    EXPECT_EQ(shortages[0].asked, Bytes(300));
    EXPECT_EQ(shortages[0].free, Bytes(7));
    EXPECT_EQ(shortages[0].allocated, Bytes(40));
    EXPECT_EQ(describeShortage(shortages[0]),
              "out of memory: asked for 300 B, 7 B free on the device, 40 B allocated, at "
              "train.py:10 forward");
}

TEST_F(TorchSnapshot, AnnotationsAndMetadataAreKept) {
    const auto with = [](const std::string& action, std::int64_t address, const char* metadata) {
        return dict({{"action", str(action)},
                     {"addr", num(address)},
                     {"size", num(10)},
                     {"user_metadata", str(metadata)},
                     {"frames", list({frame("/x/train.py", 10, "forward")})}});
    };
    const auto annotation = [](const char* stage, const char* name, int time) {
        return dict({{"stage", str(stage)},
                     {"name", str(name)},
                     {"device", num(0)},
                     {"time_us", num(time)}});
    };
    const auto session = import(
        dict({{"device_traces",
               list({list({with("alloc", 1, "phase one"), with("annotate", 1, "layer0.weight"),
                           with("annotate", 77, "before"), with("alloc", 2, ""),
                           with("free_completed", 77, "")})})},
              {"external_annotations",
               list({annotation("START", "step", 1), annotation("START", "forward", 2),
                     annotation("END", "forward", 5), annotation("END", "step", 9),
                     annotation("END", "never begun", 9), annotation("START", "open", 12)})}}));
    ASSERT_TRUE(session) << session.error().what;
    const auto layerOf = [&](std::int64_t address) {
        return test::text(*session,
                          "SELECT path FROM layers JOIN storages s ON s.layer = layers.id"
                          " WHERE s.address = " +
                              std::to_string(address));
    };
    EXPECT_EQ(layerOf(1), "train.py(10): forward > phase one > layer0.weight");
    EXPECT_EQ(layerOf(2), "train.py(10): forward");
    EXPECT_EQ(layerOf(77), "(before the history) > before");
    const auto annotations = loadAnnotations(*session);
    ASSERT_TRUE(annotations);
    ASSERT_EQ(annotations->size(), 3u);
    EXPECT_EQ((*annotations)[0].name, "step");
    EXPECT_EQ((*annotations)[0].endNs, 9000);
    EXPECT_EQ((*annotations)[1].name, "forward");
    EXPECT_EQ((*annotations)[1].beginNs, 2000);
    EXPECT_EQ((*annotations)[2].name, "open");
}

TEST_F(TorchSnapshot, TheOperatorStandsInnermostOfTorchsOwnFrames) {
    const std::string inside = list(
        {frame("??", 0, "torch::unwind::unwind()"),
         frame("??", 0, "torch::CapturedTraceback::gather(bool, bool, bool)"),
         frame("memory_snapshot.cpp", 0, "torch::cuda::(anonymous namespace)::gather_with_cpp()"),
         frame("", 0,
               "c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc(long)"),
         frame("??", 0, "at::_ops::empty_memory_format::redispatch(c10::DispatchKeySet, long)"),
         frame("??", 0, "at::(anonymous namespace)::create_out(c10::ArrayRef<long>)"),
         frame("??", 0, "at::_ops::mul_Tensor::redispatch(c10::DispatchKeySet, at::Tensor const&)"),
         frame("??", 0, "at::_ops::mul_Tensor::call(at::Tensor const&)"),
         frame("??", 0, "torch::autograd::THPVariable_mul(_object*)"),
         frame("??", 0, "_PyEval_EvalFrameDefault"), frame("/me/model.py", 31, "forward"),
         frame("??", 0, "_start")});
    const std::string backward = list(
        {frame("??", 0, "torch::unwind::unwind()"), frame("??", 0, "at::_ops::mm::call(long)"),
         frame("??", 0, "torch::autograd::generated::MmBackward0::apply(std::vector<long>&&)")});
    const auto session =
        import(list({segment(0,
                             {block(512, "active_allocated", {{"frames", inside}}),
                              block(100, "active_allocated", {{"frames", backward}})},
                             2048)}));
    ASSERT_TRUE(session) << session.error().what;
    const auto stacks = CallStacks::load(*session);
    const auto recorded = loadRecordedMemory(*session);
    ASSERT_TRUE(stacks && recorded);
    std::vector<std::string> names;
    for (const SourceFrameRow* each : stacks->frames(stacks->ofStorage(0)))
        names.push_back(frameText(*each));
    EXPECT_EQ(names,
              (std::vector<std::string>{"model.py:31 forward", "torch::autograd::THPVariable_mul",
                                        "aten::mul_Tensor"}));
    const auto atPeak = originsAtPeak(*recorded, *stacks);
    const auto groups = originsBy(OriginKey::Line, recorded->graph, *stacks, atPeak, {});
    ASSERT_EQ(groups.size(), 2u);
    EXPECT_EQ(groups[0].name, "model.py:31 forward");
    EXPECT_EQ(groups[0].largestOp, "aten::mul_Tensor");
    EXPECT_EQ(groups[1].name, "aten::mm") << "no line of the program is there";
    const OriginNode tree = originTree(OriginTree::Program, recorded->graph, *stacks, atPeak);
    ASSERT_EQ(tree.children.size(), 2u);
    EXPECT_EQ(tree.children[0].children[0].name, "aten::mul_Tensor");
    EXPECT_EQ(tree.children[1].name, "aten::mm");
}

TEST(SnapshotFrames, CppNamesLoseTheirParameters) {
    EXPECT_EQ(shortCppName("at::native::resize_cuda_(at::Tensor const&, c10::ArrayRef<long>)"),
              "at::native::resize_cuda_");
    EXPECT_EQ(shortCppName("void at::cuda::radix_sort<long, 8>(long const*)"),
              "at::cuda::radix_sort");
    EXPECT_EQ(shortCppName("at::(anonymous namespace)::create_out(long)"),
              "at::(anonymous namespace)::create_out");
    EXPECT_EQ(shortCppName("c10::Engine::operator()(int) const"), "c10::Engine::operator()");
    EXPECT_EQ(shortCppName("main"), "main");
    EXPECT_EQ(operatorOf("at::_ops::mul_Tensor::call(at::Tensor const&)"), "aten::mul_Tensor");
    EXPECT_EQ(operatorOf("at::native::mul(at::Tensor const&)"), "");
}

TEST_F(TorchSnapshot, HasNoOpsToPlan) {
    auto session = import(list({segment(0, {block(512, "active_allocated")}, 2048)}));
    ASSERT_TRUE(session) << session.error().what;
    const auto step = session->lastStep();
    ASSERT_FALSE(step);
    EXPECT_EQ(step.error().code, ErrorCode::BadInput);
    EXPECT_NE(step.error().what.find("no ops to plan"), std::string::npos) << step.error().what;
}

TEST_F(TorchSnapshot, RefusesWhatIsNoSnapshot) {
    refused("N", "no snapshot");
    refused(list({}), "no segment and no event");
    refused(dict({{"weights", num(1)}}), "no segments");
    refused(dict({{"segments", num(1)}}), "no list");
    refused(list({num(1)}), "no dict");
    refused(list({segment(-1, {}, 1)}), "number -1");
    refused(list({segment(0, {}, -1)}), "negative");
    refused(list({segment(0, {block(1, "x"), num(3)}, 1)}), "no dict");
    refused(list({segment(0, {}, INT64_MAX), segment(0, {}, INT64_MAX)}), "too much");
    refused("(dVdevice_traces\n((l" + event("snapshot", 0, 0) + "ap1\ng1\nls", "several places");
    refused(dict({{"device_traces", list({list({event("alloc", 1, -5)})})}}), "negative");
    refused(dict({{"device_traces", list({list({dict({})})})}}), "no action");
    refused(dict({{"device_traces", list({list({event("alloc", 1, 5, INT64_MAX)})})}}), "large");
}

}  // namespace
}  // namespace hw::core
