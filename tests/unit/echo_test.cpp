// SPDX-License-Identifier: MIT
#include "planners/echo/echo.h"

#include <set>

#include "core/import/import.h"
#include "planners/echo/codecs.h"
#include "planners/plan_with.h"
#include "planners/schedule/free_early.h"
#include "tests/unit/graph_builder.h"
#include "tests/unit/test_data.h"

namespace hw::planners {
namespace {

using namespace hw::core;
using test::GraphBuilder;

constexpr std::int64_t kN = 1000;       // bytes
constexpr std::int64_t kHeavy = 50000;  // time of a compute-heavy op; cheap ones take 1

Bytes baselinePeak(const TrainingGraph& graph) {
    return evaluate(graph, baselineSchedule(graph)).peak;
}

Outcome echo(const TrainingGraph& graph, const std::string& encodings = "on") {
    PlanRequest request;
    request.budget = baselinePeak(graph);
    request.options["encodings"] = encodings;
    auto outcome = planWith("echo", graph, request);
    EXPECT_TRUE(outcome) << (outcome ? "" : outcome.error().what);
    if (!outcome) return {};
    EXPECT_EQ(outcome->status, PlanStatus::Ok) << outcome->reason;
    return *outcome;
}

std::multiset<std::string> recomputed(const TrainingGraph& graph, const Outcome& outcome) {
    std::multiset<std::string> names;
    for (const Action& action : outcome.plan->schedule)
        if (action.kind == ActionKind::Recompute) names.insert(graph.ops[action.target].name);
    return names;
}

// Figures 7 and 12: Z = X + Y, each of N bytes. Recomputing Z frees N but keeps X and Y, 2N.
TEST(Echo, KeepsWhatCostsMoreToRecompute) {
    GraphBuilder b;
    const auto input = b.constant(10);
    b.phase(Phase::Forward);
    std::vector<TensorIndex> maps;
    for (int i = 0; i < 6; ++i) {
        const auto x = b.one("fully_connected", {input}, kN, kHeavy);
        const auto y = b.one("fully_connected", {input}, kN, kHeavy);
        maps.push_back(b.one("add", {x, y}, kN));
        b.release(x), b.release(y);
    }
    b.phase(Phase::Backward);
    for (auto map = maps.rbegin(); map != maps.rend(); ++map) {
        b.release(b.one("gradient", {*map}, 1));
        b.release(*map);
    }
    b.final(input);
    const TrainingGraph graph = b.build();
    const Outcome outcome = echo(graph);
    EXPECT_EQ(outcome.recomputedOps, 0);
    EXPECT_EQ(outcome.time, graph.totalTime());
}

// Figures 8 and 13: each of T decoder steps compares its query (N bytes) with the T encoder states
// (T x N, shared by all). Alone, one step would keep as much as it frees; together they keep
// T x N + T x N and free T x T x N.
TrainingGraph attention(int steps, bool shared) {
    GraphBuilder b;
    const auto input = b.constant(10);
    b.phase(Phase::Forward);
    std::vector<TensorIndex> keys, queries, scores;
    for (int t = 0; t < steps; ++t) {
        if (t == 0 || !shared)
            keys.push_back(b.one("fully_connected", {input}, steps * kN, kHeavy * steps));
        queries.push_back(b.one("fully_connected", {input}, kN, kHeavy));
        const auto sum = b.one("broadcast_add", {keys.back(), queries.back()}, steps * kN);
        scores.push_back(b.one("tanh", {sum}, steps * kN));
        b.release(sum), b.release(queries.back());
        b.release(b.one("score", {scores.back()}, steps));
    }
    for (const auto key : keys) b.release(key);
    b.phase(Phase::Backward);
    for (int t = steps - 1; t >= 0; --t) {
        b.release(b.one("tanh_backward", {scores[t]}, 1));
        b.release(scores[t]);
    }
    b.final(input);
    return b.build();
}

TEST(Echo, CountsAnInputSharedByAllTimeStepsOnce) {
    constexpr int kSteps = 20;
    const TrainingGraph graph = attention(kSteps, true);
    const Outcome outcome = echo(graph);
    EXPECT_EQ(recomputed(graph, outcome).count("tanh"), kSteps);
    EXPECT_EQ(recomputed(graph, outcome).count("fully_connected"), 0U);
    EXPECT_GE(baselinePeak(graph), Bytes(kSteps * kSteps * kN));
    // The shared states, the queries, and the buffers of one step's recomputation.
    EXPECT_LE(outcome.peak, Bytes((2 + 2) * kSteps * kN + 100));
}

TEST(Echo, RecomputesNothingWhereEachTimeStepHasItsOwnInput) {
    const TrainingGraph graph = attention(20, false);
    EXPECT_EQ(echo(graph).recomputedOps, 0);
}

// Figure 14d: the fully-connected op lies on the path, but its gradient needs its inputs only.
TEST(Echo, DeadNodesAreNotRecomputed) {
    GraphBuilder b;
    const auto weight = b.constant(10);
    std::vector<TensorIndex> inputs, wide;
    for (int t = 0; t < 8; ++t) inputs.push_back(b.constant(kN));
    b.phase(Phase::Forward);
    for (int t = 0; t < 8; ++t) {
        wide.push_back(b.one("concat", {inputs[t]}, 4 * kN));
        const auto dead = b.one("fully_connected", {wide.back(), weight}, kN, kHeavy);
        b.release(b.one("identity", {dead}, kN));
        b.release(dead);
    }
    b.phase(Phase::Backward);
    for (int t = 7; t >= 0; --t) {
        b.release(b.one("fully_connected_backward", {wide[t], weight}, 10, kHeavy));
        b.release(wide[t]);
    }
    for (const auto input : inputs) b.final(input);
    b.final(weight);
    const TrainingGraph graph = b.build();
    const Outcome outcome = echo(graph);
    EXPECT_EQ(recomputed(graph, outcome),
              (std::multiset<std::string>{"concat", "concat", "concat", "concat", "concat",
                                          "concat", "concat", "concat"}));
    EXPECT_LT(outcome.peak, baselinePeak(graph));
}

// A cell state runs through all time steps by cheap ops: one recomputation of all would need the
// memory that it was to free.
TEST(Echo, SplitsChainsOfCheapOps) {
    constexpr int kSteps = 64;
    const TrainingGraph graph = test::chain(kSteps, kN);
    const Outcome outcome = echo(graph);
    EXPECT_LT(outcome.peak, Bytes(baselinePeak(graph).count() / 2));
    EXPECT_LE(outcome.recomputedOps, kSteps);
}

// A feed-forward block as recorded: ReLU, dropout by a drawn mask, and their gradients.
struct Block {
    TensorIndex relu, mask;
};
TrainingGraph feedForward(int blocks, std::vector<Block>& made, bool reluNeeded = false) {
    GraphBuilder b;
    const auto input = b.constant(10);
    b.phase(Phase::Forward);
    std::vector<TensorIndex> out;
    for (int i = 0; i < blocks; ++i) {
        const auto hidden = b.one("aten::addmm", {input}, 16 * kN, kHeavy * 16);
        const auto relu = b.one("aten::relu", {hidden}, 16 * kN);
        b.release(hidden);
        const auto mask = b.one("aten::empty_like", {relu}, 16 * kN);
        b.inPlace("aten::bernoulli_.float", {mask}, kHeavy);
        b.inPlace("aten::div_.Scalar", {mask});
        out.push_back(b.one("aten::mul.Tensor", {relu, mask}, 16 * kN));
        made.push_back({relu, mask});
        b.release(b.one("aten::sum", {out.back()}, 10));
    }
    b.phase(Phase::Backward);
    for (int i = blocks - 1; i >= 0; --i) {
        const auto gradient = b.one("aten::mul.Tensor", {out[i], made[i].mask}, 16 * kN);
        b.release(out[i]), b.release(made[i].mask);
        b.release(b.one("aten::threshold_backward", {gradient, made[i].relu}, 16 * kN));
        b.release(gradient);
        if (reluNeeded) b.release(b.one("aten::mm", {made[i].relu}, 10, kHeavy));
        b.release(made[i].relu);
    }
    b.final(input);
    return b.build();
}

TEST(EchoCodecs, FitMasksAndSigns) {
    std::vector<Block> blocks;
    const TrainingGraph graph = feedForward(1, blocks);
    const auto sites = codecSites(graph);
    ASSERT_EQ(sites.size(), 2U);
    EXPECT_EQ(sites[0].storage, graph.storageOf(blocks[0].relu));
    EXPECT_EQ(sites[0].codec, kSignCodec);
    EXPECT_EQ(sites[0].bytes, Bytes(kN));
    EXPECT_EQ(sites[1].storage, graph.storageOf(blocks[0].mask));
    EXPECT_EQ(sites[1].codec, kMaskCodec);
    EXPECT_EQ(sites[1].bytes, Bytes(kN + 8));
}

TEST(EchoCodecs, LeaveAReluAloneThatAThresholdReads) {
    GraphBuilder b;
    const auto input = b.constant(kN);
    b.phase(Phase::Forward);
    const auto relu = b.one("aten::relu", {input}, kN);
    const auto cut = b.one("aten::threshold", {relu}, kN);
    b.phase(Phase::Backward);
    b.release(b.one("aten::threshold_backward", {cut, relu}, kN));
    b.release(relu), b.release(cut);
    b.final(input);
    EXPECT_TRUE(codecSites(b.build()).empty());
}

// Replays the codecs alone: whoever reads a decoded form must be served by the codec.
int checkCodecs(const TrainingGraph& graph, const Schedule& schedule) {
    std::map<StorageIndex, std::string> decoded, encoded;
    int count = 0;
    for (const Action& action : schedule) {
        if (action.kind == ActionKind::Encode) {
            encoded[action.target] = action.encoding->codec, ++count;
            EXPECT_LT(action.encoding->bytes, graph.storages[action.target].bytes);
        } else if (action.kind == ActionKind::Decode) {
            decoded[action.target] = encoded.at(action.target);
        } else if (action.kind == ActionKind::Free) {
            decoded.erase(action.target);
        } else {
            for (const Use& use : graph.ops[action.target].inputs)
                if (const auto form = decoded.find(graph.storageOf(use.tensor));
                    form != decoded.end()) {
                    EXPECT_TRUE(codecServes(graph, form->second, action.target, form->first));
                }
        }
    }
    return count;
}

TEST(EchoCodecs, NarrowTheIndicesOfAPooling) {
    GraphBuilder b;
    const auto input = b.constant(4 * kN);
    b.phase(Phase::Forward);
    const auto pooled = b.op("aten::max_pool2d_with_indices", {input}, {kN, 2 * kN});
    const auto other = b.one("aten::exp", {pooled[0]}, kN);
    b.phase(Phase::Backward);
    const auto gradient =
        b.one("aten::max_pool2d_with_indices_backward", {other, input, pooled[1]}, 4 * kN);
    b.release(pooled[0]), b.release(pooled[1]), b.release(other), b.release(gradient);
    b.final(input);
    const TrainingGraph graph = b.build();
    const auto sites = codecSites(graph);
    ASSERT_EQ(sites.size(), 1U);
    EXPECT_EQ(sites[0].storage, graph.storageOf(pooled[1]));
    EXPECT_EQ(sites[0].codec, kIndexCodec);
    EXPECT_EQ(sites[0].bytes, Bytes(kN));
    const Schedule schedule = withCodecs(graph, baselineSchedule(graph), sites);
    EXPECT_EQ(checkCodecs(graph, schedule), 1);
    EXPECT_TRUE(evaluate(graph, schedule).valid);
}

TEST(EchoCodecs, ShrinkMasksWhileNobodyReadsThem) {
    std::vector<Block> blocks;
    const TrainingGraph graph = feedForward(8, blocks);
    const Outcome plain = echo(graph, "off"), encoded = echo(graph);
    EXPECT_EQ(checkCodecs(graph, plain.plan->schedule), 0);
    EXPECT_GE(checkCodecs(graph, encoded.plan->schedule), 8);
    EXPECT_LT(encoded.peak, plain.peak);
}

TEST(EchoCodecs, KeepAReluWholeForReadersOfItsValues) {
    std::vector<Block> blocks;
    const TrainingGraph graph = feedForward(4, blocks, true);
    std::vector<CodecSite> sites = codecSites(graph);
    std::erase_if(sites, [](const CodecSite& site) { return site.codec != kSignCodec; });
    ASSERT_EQ(sites.size(), 4U);
    EXPECT_EQ(checkCodecs(graph, withCodecs(graph, baselineSchedule(graph), sites)), 0);
    const TrainingGraph signsOnly = feedForward(4, blocks);
    const Schedule schedule = withCodecs(signsOnly, baselineSchedule(signsOnly), sites);
    EXPECT_EQ(checkCodecs(signsOnly, schedule), 4);
    EXPECT_TRUE(evaluate(signsOnly, schedule).valid);
}

TEST(FreeEarly, NeverRaisesThePeakNorChangesTheTime) {
    int better = 0;
    for (unsigned seed = 0; seed < 200; ++seed) {
        const TrainingGraph graph = test::randomGraph(seed, 60);
        const Evaluation before = evaluate(graph, baselineSchedule(graph));
        const Evaluation after = evaluate(graph, freeEarly(graph, baselineSchedule(graph)));
        ASSERT_TRUE(after.valid) << "seed " << seed << ": " << after.why;
        EXPECT_LE(after.peak, before.peak);
        EXPECT_EQ(after.time, before.time);
        better += after.peak < before.peak ? 1 : 0;
    }
    EXPECT_GT(better, 0);
}

// A random network: cheap and heavy ops, several outputs, writes in place, early releases; the
// gradient of each op reads some of what the op read and made.
TrainingGraph randomNetwork(unsigned seed, int ops) {
    std::mt19937 random(seed);
    auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    GraphBuilder b;
    std::vector<TensorIndex> recent{b.constant(1 + below(50))};
    const auto input = recent.front();
    std::vector<std::vector<TensorIndex>> saved;
    std::vector<TensorIndex> all;
    b.phase(Phase::Forward);
    for (int i = 0; i < ops; ++i) {
        std::vector<TensorIndex> inputs;
        for (int k = 0, n = 1 + below(3); k < n; ++k)
            inputs.push_back(
                recent[recent.size() - 1 - below(std::min(static_cast<int>(recent.size()), 4))]);
        const bool heavy = below(3) == 0;
        std::vector<std::int64_t> sizes;
        for (int k = 0, n = 1 + below(2); k < n; ++k) sizes.push_back(10 + below(500));
        saved.emplace_back();
        if (below(2) == 0) saved.back().push_back(inputs.front());
        for (const auto made :
             b.op(heavy ? "heavy" : "cheap", inputs, sizes, heavy ? 10000 : 1 + below(9))) {
            if (below(4) == 0) b.inPlace("write_", {made});
            if (below(2) == 0) saved.back().push_back(made);
            recent.push_back(made), all.push_back(made);
        }
    }
    b.phase(Phase::Backward);
    for (auto inputs = saved.rbegin(); inputs != saved.rend(); ++inputs)
        if (!inputs->empty()) b.release(b.one("gradient", *inputs, 1 + below(300)));
    for (const auto tensor : all) b.release(tensor);
    b.final(input);
    return b.build();
}

TEST(Echo, IsNeverWorseThanTheBaselineOnRandomGraphs) {
    unsigned recomputing = 0;
    for (unsigned seed = 0; seed < test::share(300); ++seed) {
        const int ops = 20 + static_cast<int>(seed % 150);
        for (const TrainingGraph& graph :
             {test::randomGraph(seed, ops), randomNetwork(seed, ops)}) {
            const Outcome outcome = echo(graph);
            EXPECT_LE(outcome.peak, baselinePeak(graph)) << "seed " << seed;
            recomputing += outcome.recomputedOps > 0 ? 1 : 0;
            EXPECT_EQ(recomputed(graph, outcome).count("heavy"), 0U) << "seed " << seed;
        }
    }
    EXPECT_GT(recomputing, test::share(100));
}

class EchoOnFiles : public testing::TestWithParam<std::string> {};

TEST_P(EchoOnFiles, LowersThePeak) {
    auto session = openAny(GetParam());
    ASSERT_TRUE(session);
    const auto graph = loadGraph(*session, *session->lastStep());
    ASSERT_TRUE(graph);
    const Outcome outcome = echo(*graph);
    EXPECT_LE(outcome.peak, baselinePeak(*graph));
    EXPECT_EQ(checkCodecs(*graph, outcome.plan->schedule), 0) << "logs take no encodings";
}

// A Transformer with dropout, as recorded.
TEST(Echo, LowersThePeakOfTheSampleSession) {
    auto session = Session::open(SAMPLE_SESSION);
    ASSERT_TRUE(session);
    const auto graph = loadGraph(*session, *session->lastStep());
    ASSERT_TRUE(graph);
    const Outcome plain = echo(*graph, "off"), encoded = echo(*graph);
    EXPECT_LT(plain.peak, baselinePeak(*graph));
    EXPECT_LT(encoded.peak, plain.peak);
    EXPECT_GT(checkCodecs(*graph, encoded.plan->schedule), 0);
}

INSTANTIATE_TEST_SUITE_P(Data, EchoOnFiles, testing::ValuesIn(test::simrdLogs()), test::dataNameOf);

}  // namespace
}  // namespace hw::planners
