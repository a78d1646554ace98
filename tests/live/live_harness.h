// SPDX-License-Identifier: MIT
// Programs under the live runtime and alone: what the tests of both runtimes need.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "budget_runtime.h"
#include "core/graph/training_graph.h"
#include "core/session/rows.h"
#include "observer.h"
#include "runtime.h"
#include "tests/live/random_program.h"

namespace hw::test {

/// Counts and tells nothing.
const profiler::native::AgentApi& silentAgent();

/// Asks for room at any time, as allocations within ops do: whenever it is asked for the time.
struct Pressure {
    live::runtime::BudgetRuntime* runtime = nullptr;
    std::mt19937 random;
    unsigned oneIn = 4;
    std::int64_t time = 0;
    bool asking = false;
    bool loses = true;  // some of what was freed
};
extern Pressure gPressure;
const profiler::native::AgentApi& pressingAgent();

struct Recorded {
    core::TrainingGraph graph;
    std::vector<core::TensorRow> tensors;
};
/// The second step of a program, which the first one has made what all others find.
Recorded record(const Program& program, std::uint64_t seed);

struct Figures {
    std::int64_t steps = 0, planned = 0, recomputed = 0, restored = 0;
    std::int64_t unplannable = 0;          // programs whose plan was given up for good
    std::int64_t within = 0, evicted = 0;  // a budget
    std::int64_t bySize = 0, requests = 0;
    std::int64_t rescued = 0, refused = 0, freed = 0;  // allocations that had failed; bytes
    std::int64_t replayed = 0;                         // evictions
    std::map<std::string, int> encodings;              // planned, by codec
    std::int64_t offloads = 0;                         // planned
};

/// A plan at random, as the runtime is given it.
std::string liveProgramOf(const Recorded& recorded, std::mt19937& random, Figures& figures,
                          profiler::wire::LiveActions can = profiler::wire::kPlanActions);

/// All that there is after each step.
std::string runAlone(const std::vector<Program>& steps, std::uint64_t seed);
std::string runLive(const std::vector<Program>& steps, std::uint64_t seed,
                    live::runtime::Engine& runtime, Figures& figures);
/// Allocations ask for room at any time.
std::string runPressed(const std::vector<Program>& steps, unsigned number,
                       live::runtime::BudgetRuntime& runtime, std::mt19937& random,
                       Figures& figures);
/// A step that does this, and does not end.
void runStep(live::runtime::BudgetRuntime& runtime, const std::function<void()>& step);
extern std::map<profiler::native::Turn, std::int64_t> gTurns;  // of typed ops

/// HIGHWATER_LIVE_CASES: how many programs (10,000 take some minutes).
unsigned wantedCases();
/// What so many cases come to together, from HIGHWATER_LIVE_FIRST on, up to the first that fails.
Figures runCases(void (*run)(unsigned number, Figures& figures), unsigned cases);

/// Ops come by.
class LiveTest : public ::testing::Test {
protected:
    static void SetUpTestSuite() { ASSERT_TRUE(profiler::native::prepare()); }
};

}  // namespace hw::test
