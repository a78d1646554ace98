// SPDX-License-Identifier: MIT
#include "planners/monet/monet.h"

#include <cmath>

#include "planners/monet/menu.h"
#include "planners/monet/search.h"
#include "planners/plan_with.h"
#include "planners/program/cut_relaxation.h"
#include "tests/unit/exhaustive_search.h"
#include "tests/unit/graph_builder.h"

namespace hw::planners {
namespace {

using namespace hw::core;

PlanRequest requestFor(const Menu& menu, Bytes budget, const std::string& use = "") {
    PlanRequest request;
    request.budget = budget;
    request.workLimit = 5;
    request.menu = menu;
    if (!use.empty()) request.options["use"] = use;
    return request;
}

Outcome planWithMenu(const TrainingGraph& graph, const Menu& menu, Bytes budget,
                     const std::string& use = "") {
    auto outcome = planWith("monet", graph, requestFor(menu, budget, use));
    EXPECT_TRUE(outcome) << (outcome ? "" : outcome.error().what);
    return outcome ? std::move(*outcome) : Outcome{};
}

Implementation algorithm(OpIndex op, const char* name, std::int64_t time, std::int64_t workspace) {
    Implementation one;
    one.op = op;
    one.name = name;
    one.time = Nanoseconds(time);
    one.workspace = Bytes(workspace);
    return one;
}

Implementation dataflow(ImplementationKind kind, OpIndex op, OpIndex backward,
                        StorageIndex insteadOf) {
    Implementation one;
    one.op = op;
    one.name = implementationKindName(kind);
    one.kind = kind;
    one.backward = backward;
    one.insteadOf = insteadOf;
    if (kind == ImplementationKind::InPlace) one.takes = insteadOf;
    return one;
}

// Blocks of a layer and an activation, forward and backward. Activation i is op 2i + 1, reads
// storage 2i + 1 and makes 2i + 2 (storage 0 is the input); its gradient op reads the former, that
// of the layer after it the latter.
TrainingGraph blocks(int count) {
    test::GraphBuilder b;
    const TensorIndex input = b.constant(100);
    std::vector<TensorIndex> read, made{input};
    b.phase(Phase::Forward);
    for (int i = 0; i < count; ++i) {
        read.push_back(b.one("layer", {made.back()}, 100, 20));
        made.push_back(b.one("activation", {read.back()}, 100, 4));
    }
    b.phase(Phase::Backward);
    TensorIndex gradient = b.one("loss_backward", {made.back()}, 100, 4);
    for (int i = count - 1; i >= 0; --i) {
        const TensorIndex inner = b.one("activation_backward", {gradient, read[i]}, 100, 6);
        b.release(gradient);
        b.release(read[i]);
        b.release(made[i + 1]);
        gradient = b.one("layer_backward", {inner, made[i]}, 100, 40);
        b.release(inner);
    }
    b.final(gradient);
    b.final(input);
    return b.build();
}
OpIndex activation(int i) {
    return 2 * i + 1;
}
OpIndex activationGradient(int count, int i) {
    return 2 * count + 1 + 2 * (count - 1 - i);
}

// The three kinds for every activation, algorithms for every layer.
Menu fullMenu(const TrainingGraph& graph, int count) {
    Menu menu;
    for (int i = 0; i < count; ++i) {
        for (const auto kind :
             {ImplementationKind::OutputActivated, ImplementationKind::IntermediateActivated,
              ImplementationKind::InPlace}) {
            Implementation one =
                dataflow(kind, activation(i), activationGradient(count, i), 2 * i + 1);
            one.backwardTime = Nanoseconds(kind == ImplementationKind::InPlace ? 9 : 7);
            one.bytes = Bytes(kind == ImplementationKind::IntermediateActivated ? 4 : 0);
            menu.implementations.push_back(one);
        }
        menu.implementations.push_back(algorithm(2 * i, "fast", 12, 150));
        menu.implementations.push_back(algorithm(2 * i, "faster", 9, 600));
    }
    EXPECT_EQ(graph.ops[activationGradient(count, 0)].name, "activation_backward");
    return menu;
}

Bytes share(const TrainingGraph& graph, double of) {
    const Bytes peak = evaluate(graph, baselineSchedule(graph)).peak;
    return Bytes(static_cast<std::int64_t>(static_cast<double>(peak.count()) * of));
}

TEST(Monet, TakesTheFastestAlgorithmThatFitsBesideTheMatrix) {
    const TrainingGraph graph = blocks(3);
    // Layers 0 and 2 (ops 0 and 4) run beside 1 and 5 other storages; the peak is 9 x 100.
    Menu menu;
    menu.implementations = {algorithm(0, "fast", 12, 150), algorithm(0, "faster", 9, 600),
                            algorithm(4, "fast", 12, 150), algorithm(4, "faster", 9, 400)};
    const Outcome outcome = planWithMenu(graph, menu, share(graph, 1.0));
    ASSERT_EQ(outcome.status, PlanStatus::Ok) << outcome.reason;
    EXPECT_EQ(outcome.recomputedOps, 0);
    const ImplementationChoice expected{{0, "faster"}, {4, "fast"}};
    EXPECT_EQ(outcome.plan->implementations, expected);
    EXPECT_EQ(outcome.time, graph.totalTime() - Nanoseconds(11 + 8));
    EXPECT_LT(outcome.overhead, 1.0);
}

TEST(Monet, ReadsTheOutputInsteadOfRecomputing) {
    constexpr int kCount = 6;
    const TrainingGraph graph = blocks(kCount);
    Menu menu;
    for (int i = 0; i < kCount; ++i)
        menu.implementations.push_back(dataflow(ImplementationKind::OutputActivated, activation(i),
                                                activationGradient(kCount, i), 2 * i + 1));
    // The gradient ops cost the same from the output: nothing has to be recomputed at 0.6.
    const Outcome chosen = planWithMenu(graph, menu, share(graph, 0.6));
    ASSERT_EQ(chosen.status, PlanStatus::Ok) << chosen.reason;
    EXPECT_EQ(chosen.time, graph.totalTime());
    EXPECT_EQ(chosen.recomputedOps, 0);
    EXPECT_GE(chosen.plan->implementations.size(), 4U);
    const Outcome without = planWithMenu(graph, menu, share(graph, 0.6), "none");
    ASSERT_EQ(without.status, PlanStatus::Ok) << without.reason;
    EXPECT_GT(without.time, graph.totalTime());
    EXPECT_TRUE(without.plan->implementations.empty());
}

TEST(Monet, FindsBudgetsThatOnlyAnInPlaceOpKeeps) {
    test::GraphBuilder b;
    const TensorIndex input = b.constant(20);
    const TensorIndex x = b.one("layer", {input}, 100), y = b.one("activation", {x}, 100);
    b.release(x);
    const TensorIndex result = b.one("sum", {y}, 10);
    b.release(y);
    b.final(input);
    b.final(result);
    const TrainingGraph graph = b.build();
    Menu menu;
    menu.implementations = {dataflow(ImplementationKind::InPlace, 1, kNone, b.storage(x))};
    menu.implementations[0].takes = b.storage(x);
    const Outcome outcome = planWithMenu(graph, menu, Bytes(130));
    ASSERT_EQ(outcome.status, PlanStatus::Ok) << outcome.reason;
    EXPECT_EQ(outcome.peak, Bytes(20 + 100 + 10));
    EXPECT_EQ(outcome.plan->implementations, (ImplementationChoice{{1, "in-place"}}));
    EXPECT_EQ(planWithMenu(graph, menu, Bytes(129)).status, PlanStatus::Infeasible);
    EXPECT_EQ(planWithMenu(graph, menu, Bytes(219), "none").status, PlanStatus::Infeasible);
    EXPECT_EQ(planWithMenu(graph, menu, Bytes(220), "none").status, PlanStatus::Ok);
}

TEST(Monet, FindsBudgetsThatOnlyAnEncodedFormKeeps) {
    const TrainingGraph graph = blocks(1);
    const Menu menu = fullMenu(graph, 1);
    // The gradient op of the activation: the input, what it reads twice and what it makes; with a
    // mask the activation itself needs the most: the input, what it reads, makes, and the mask.
    EXPECT_EQ(planWithMenu(graph, menu, Bytes(399), "none").status, PlanStatus::Infeasible);
    const Outcome encoded = planWithMenu(graph, menu, Bytes(304), "intermediate");
    ASSERT_EQ(encoded.status, PlanStatus::Ok) << encoded.reason;
    EXPECT_EQ(encoded.peak, Bytes(304));
    EXPECT_EQ(encoded.recomputedOps, 0);
    EXPECT_NE(planWithMenu(graph, menu, Bytes(303), "intermediate").status, PlanStatus::Ok);
}

TEST(Monet, AllKindsAreNeverWorseThanOne) {
    constexpr int kCount = 8;
    const TrainingGraph graph = blocks(kCount);
    const Menu menu = fullMenu(graph, kCount);
    for (const double of : {0.9, 0.7, 0.5, 0.4}) {
        const Bytes budget = share(graph, of);
        const Outcome all = planWithMenu(graph, menu, budget);
        const Outcome none = planWithMenu(graph, menu, budget, "none");
        for (const char* use :
             {"none", "algorithms", "output-activated", "intermediate", "in-place"}) {
            const Outcome part = planWithMenu(graph, menu, budget, use);
            if (part.status != PlanStatus::Ok) continue;
            ASSERT_EQ(all.status, PlanStatus::Ok) << use << " has a plan at " << of;
            EXPECT_LE(all.time, part.time) << use << " at " << of;
            if (none.status == PlanStatus::Ok) {
                EXPECT_LE(part.time, none.time) << use << " at " << of;
            }
            if (part.lowerBound) {
                EXPECT_LE(*part.lowerBound, part.time);
            }
            for (const auto& [op, name] : part.plan->implementations) {
                const auto kinds = parseKinds(use);
                EXPECT_TRUE(kinds->contains(menu.find(op, name)->kind)) << use << ": " << name;
            }
        }
        EXPECT_EQ(all.status, PlanStatus::Ok) << of;
    }
}

TEST(Monet, PlansCarryWhatTheyChose) {
    constexpr int kCount = 6;
    const TrainingGraph graph = blocks(kCount);
    const Menu menu = fullMenu(graph, kCount);
    const Outcome outcome = planWithMenu(graph, menu, share(graph, 0.45));
    ASSERT_EQ(outcome.status, PlanStatus::Ok) << outcome.reason;
    ASSERT_FALSE(outcome.plan->implementations.empty());
    const auto plan = parsePlan(writePlan(*outcome.plan));
    ASSERT_TRUE(plan) << plan.error().what;
    EXPECT_EQ(plan->implementations, outcome.plan->implementations);
    const auto under = graphUnder(*plan, graph, {});
    ASSERT_TRUE(under) << under.error().what;
    const Evaluation again = evaluate(*under, plan->schedule);
    ASSERT_TRUE(again.valid) << again.why;
    EXPECT_EQ(again.peak, outcome.peak);
    EXPECT_EQ(again.time, outcome.time);
    EXPECT_LE(again.peak, outcome.budget);
    EXPECT_EQ(plan->chosen.implementations.size(), plan->implementations.size());
    EXPECT_EQ(parseMenu(fileOptions(*plan).at("menu"), graph)->implementations.size(),
              plan->implementations.size());
}

TEST(Monet, IsTheSameForTheSameSeedAndWork) {
    const TrainingGraph graph = blocks(8);
    const Menu menu = fullMenu(graph, 8);
    const Outcome first = planWithMenu(graph, menu, share(graph, 0.5)),
                  second = planWithMenu(graph, menu, share(graph, 0.5));
    ASSERT_EQ(first.status, PlanStatus::Ok) << first.reason;
    EXPECT_EQ(writePlan(*first.plan), writePlan(*second.plan));
}

TEST(Monet, RefusesMalformedMenusAndUnknownKinds) {
    const TrainingGraph graph = blocks(2);
    PlanRequest request;
    request.budget = share(graph, 1.0);
    request.menu.implementations = {algorithm(static_cast<OpIndex>(graph.ops.size()), "fft", 1, 0)};
    const auto malformed = planWith("monet", graph, request);
    ASSERT_FALSE(malformed);
    EXPECT_EQ(malformed.error().code, ErrorCode::BadInput);
    request.menu.implementations = {algorithm(kNone, "fft", 1, 0)};
    EXPECT_FALSE(planWith("monet", graph, request));
    const auto kinds = parseKinds("algorithms,magic");
    ASSERT_FALSE(kinds);
    EXPECT_EQ(kinds.error().code, ErrorCode::Usage);
    EXPECT_EQ(parseKinds("in-place,algorithms")->size(), 2U);
    EXPECT_EQ(parseKinds("")->size(), 4U);
    EXPECT_TRUE(parseKinds("none")->empty());
}

// Random implementations of a random graph's ops: pairs of an op and a later reader of its input.
Menu randomMenu(const TrainingGraph& graph, unsigned seed) {
    std::mt19937 random(seed);
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    Menu menu;
    for (OpIndex op = 0; op < static_cast<OpIndex>(graph.ops.size()); ++op) {
        if (graph.ops[op].viewOnly) continue;
        if (below(4) == 0) menu.implementations.push_back(algorithm(op, "a", below(9), below(60)));
        if (below(4) == 0) menu.implementations.push_back(algorithm(op, "b", below(9), below(60)));
        for (const Use& use : graph.ops[op].inputs) {
            const StorageIndex s = graph.storageOf(use.tensor);
            for (const OpIndex reader : graph.storages[s].readers) {
                if (reader <= op || below(2) == 0) continue;
                Implementation one =
                    dataflow(static_cast<ImplementationKind>(1 + below(3)), op, reader, s);
                one.name += std::to_string(menu.implementations.size());
                one.backwardTime = Nanoseconds(1 + below(9));
                if (one.kind == ImplementationKind::IntermediateActivated)
                    one.bytes = Bytes(below(10));
                if (below(3) == 0 && one.kind == ImplementationKind::InPlace)
                    one.backward = one.insteadOf = kNone, one.backwardTime.reset();
                if (implementationFault(graph, one).empty()) menu.implementations.push_back(one);
            }
        }
    }
    return menu;
}

// Whatever the menu offers, the judge accepts the plan, and no plan under any single choice that
// another planner finds is faster than the bound. Retention matrices carried between graphs stay
// schedules.
TEST(Monet, IsValidAndItsBoundHoldsOnRandomGraphs) {
    int planned = 0, compared = 0, chosenKinds = 0;
    for (unsigned seed = 0; seed < 120; ++seed) {
        const TrainingGraph graph = test::randomGraph(seed, 20 + static_cast<int>(seed % 40));
        const Menu menu = randomMenu(graph, seed);
        if (menu.empty()) continue;
        for (const double of : {1.0, 0.9}) {
            PlanRequest request = requestFor(menu, share(graph, of));
            request.workLimit = 1;
            const auto outcome = planWith("monet", graph, request);
            ASSERT_TRUE(outcome) << "seed " << seed << ": " << outcome.error().what;
            if (outcome->status == PlanStatus::Ok) {
                ++planned;
                EXPECT_LE(outcome->peak, request.budget);
                for (const auto& [op, name] : outcome->plan->implementations)
                    chosenKinds |= 1 << static_cast<int>(menu.find(op, name)->kind);
            }
            for (const Implementation& one : menu.implementations) {
                const auto under = applyImplementations(graph, menu, {{one.op, one.name}});
                if (!under || one.op % 3 != 0) continue;
                PlanRequest plain;
                plain.budget = request.budget;
                plain.workLimit = 1;
                const auto other = planWith("dtr:full", *under, plain);
                ASSERT_TRUE(other) << other.error().what;
                if (other->status != PlanStatus::Ok) continue;
                ++compared;
                ASSERT_NE(outcome->status, PlanStatus::Infeasible)
                    << "seed " << seed << " at " << of << ": " << one.name << " has a plan; "
                    << outcome->reason;
                if (outcome->lowerBound) {
                    EXPECT_GE(other->time, *outcome->lowerBound)
                        << "seed " << seed << " at " << of << ": " << one.name;
                }
            }
        }
    }
    EXPECT_GT(planned, 60);
    EXPECT_GT(compared, 200);
    EXPECT_EQ(chosenKinds & 7, 7) << "algorithms and new reads are of use somewhere";
}

// The least time of any schedule under one of the choices; none when no schedule keeps the budget.
// `complete` becomes false when a search was given up.
std::optional<Nanoseconds> bestOf(const std::vector<TrainingGraph>& variants, Bytes budget,
                                  bool& complete) {
    constexpr std::size_t kMostStates = 20'000;
    std::optional<Nanoseconds> best;
    for (const TrainingGraph& variant : variants) {
        const test::BestSchedule search(variant, budget, kMostStates);
        if (search.exhausted()) complete = false;
        if (search.time() && (!best || *search.time() < *best)) best = search.time();
    }
    return best;
}

// The graphs under no choice, every choice of one entry and of two that go together.
std::vector<TrainingGraph> variantsOf(const TrainingGraph& graph, const Menu& menu) {
    constexpr std::size_t kMostWrites = 3;  // of a storage, in the exhaustive search
    std::vector<TrainingGraph> variants{graph};
    const auto add = [&](const ImplementationChoice& choice) {
        auto under = applyImplementations(graph, menu, choice);
        if (under && std::all_of(under->storages.begin(), under->storages.end(),
                                 [&](const Storage& s) { return s.writers.size() <= kMostWrites; }))
            variants.push_back(std::move(*under));
    };
    for (const Implementation& one : menu.implementations) {
        add({{one.op, one.name}});
        for (const Implementation& other : menu.implementations)
            if (one.op < other.op) add({{one.op, one.name}, {other.op, other.name}});
    }
    return variants;
}

// No schedule under any choice of up to two entries is faster than the bound, or keeps a budget
// that is called impossible.
TEST(Monet, BoundsHoldAgainstExhaustiveSearch) {
    int feasible = 0, reached = 0, complete = 0;
    for (unsigned seed = 0; seed < 70; ++seed) {
        const TrainingGraph graph = test::smallGraph(seed);
        Menu menu = randomMenu(graph, seed);
        if (menu.implementations.size() > 5) menu.implementations.resize(5);
        const std::vector<TrainingGraph> variants = variantsOf(graph, menu);
        const Bytes peak = evaluate(graph, baselineSchedule(graph)).peak;
        for (const int percent : {100, 85, 70}) {
            const Bytes budget(peak.count() * percent / 100);
            PlanRequest request = requestFor(menu, budget);
            request.workLimit = 1;
            const auto outcome = planWith("monet", graph, request);
            ASSERT_TRUE(outcome) << outcome.error().what;
            bool all = true;
            const auto best = bestOf(variants, budget, all);
            if (all) ++complete;
            if (!best) continue;
            ++feasible;
            ASSERT_NE(outcome->status, PlanStatus::Infeasible)
                << "seed " << seed << ", " << percent << " %: " << outcome->reason;
            if (outcome->lowerBound) {
                EXPECT_LE(*outcome->lowerBound, *best)
                    << "seed " << seed << ", " << percent << " %";
            }
            if (outcome->status == PlanStatus::Ok && outcome->time <= *best) ++reached;
        }
    }
    EXPECT_GT(feasible, 60);
    EXPECT_GT(complete, 60);
    EXPECT_GT(reached, feasible * 3 / 4) << "as good as the best with two entries";
}

TEST(TransferRetention, KeepsWhatWasKeptAndStaysASchedule) {
    int merged = 0, carried = 0, complete = 0;
    for (unsigned seed = 0; seed < 80; ++seed) {
        const TrainingGraph graph = test::randomGraph(seed, 40);
        const Menu menu = randomMenu(graph, seed);
        const ImplementedGraph captured(graph);
        StageJudge from(captured.model, share(graph, 0.8));
        for (const Implementation& one : menu.implementations) {
            auto under = applyImplementations(graph, menu, {{one.op, one.name}});
            if (!under) continue;
            const ImplementedGraph implemented(std::move(*under));
            StageJudge to(implemented.model, share(graph, 0.8)),
                back(captured.model, from.budget());
            transferRetention(from, to);
            const Evaluation judged = evaluate(implemented.graph, to.schedule());
            ASSERT_TRUE(judged.valid) << "seed " << seed << ", " << one.name << ": " << judged.why;
            EXPECT_EQ(judged.time, to.time());
            EXPECT_EQ(judged.peak, to.peak());
            ++carried;
            if (judged.recomputedOps == 0) ++complete;
            transferRetention(to, back);
            EXPECT_TRUE(evaluate(graph, back.schedule()).valid);
            if (one.kind == ImplementationKind::InPlace) ++merged;
        }
    }
    EXPECT_GT(merged, 10);
    EXPECT_GT(complete, carried * 9 / 10) << "from a matrix that keeps all there is";
}

}  // namespace
}  // namespace hw::planners
