// SPDX-License-Identifier: MIT
// What no op shows: bytes that other code writes, settings, ops with randomness of their own. Every
// bit is that of the program alone, or the program ends; and verification catches what the guards
// are for where these are switched off.
#include <gtest/gtest.h>

#include <ATen/Context.h>

#include "guards.h"
#include "tests/live/live_harness.h"

namespace hw::test {
namespace {

using live::runtime::BudgetRuntime;
using live::runtime::Engine;
using live::runtime::Guards;
using live::runtime::OtherBytes;
using live::runtime::Runtime;
namespace native = profiler::native;

class LiveUnseen : public LiveTest {
protected:
    void TearDown() override {
        Guards::switchOff(nullptr);
        at::globalContext().setFlushDenormal(false);
    }
};

/// How cases end: as alone, by verification, or with other bits, which must not be.
struct Ends {
    int same = 0, ended = 0, other = 0, firstOther = -1;
};

std::vector<Program> randomSteps(std::mt19937& random) {
    std::vector<Program> steps{randomProgram(random, 6 + random() % 40, true)};
    for (int i = 0; i < 4; ++i)
        steps.push_back(random() % 3 > 0 ? steps.front() : changed(steps.front(), random));
    return steps;
}

template <typename Run>
void count(Ends& ends, unsigned number, const std::string& alone, const Run& run) {
    try {
        if (run() == alone) {
            ++ends.same;
            return;
        }
        ++ends.other;
        if (ends.firstOther < 0) ends.firstOther = static_cast<int>(number);
    } catch (const OtherBytes&) {
        native::leave();
        gPressure.runtime = nullptr;
        ++ends.ended;
    }
}

void runPlanned(unsigned number, Ends& ends, Figures& figures) {
    std::mt19937 random(number);
    const std::vector<Program> steps = randomSteps(random);
    const std::string alone = runAlone(steps, number);
    const Recorded recorded = record(steps.front(), number);
    if (recorded.graph.ops.empty()) return;
    Runtime runtime(silentAgent());
    std::string why;
    if (!runtime.add(liveProgramOf(recorded, random, figures), why)) return;
    count(ends, number, alone, [&] { return runLive(steps, number, runtime, figures); });
}

void runWithin(unsigned number, Ends& ends, Figures& figures) {
    std::mt19937 random(number);
    const std::vector<Program> steps = randomSteps(random);
    const std::string alone = runAlone(steps, number);
    BudgetRuntime runtime(pressingAgent(), planners::DtrHeuristic::EqClass, false);
    count(ends, number, alone, [&] { return runPressed(steps, number, runtime, random, figures); });
}

Ends runAll(void (*run)(unsigned, Ends&, Figures&), Figures& figures) {
    Ends ends;
    const char* const first = std::getenv("HIGHWATER_LIVE_FIRST");
    const unsigned from = first != nullptr ? static_cast<unsigned>(std::atoi(first)) : 0;
    for (unsigned i = from; i < from + wantedCases(); ++i) run(i, ends, figures);
    EXPECT_EQ(ends.other, 0) << "first: case " << ends.firstOther;
    return ends;
}

TEST_F(LiveUnseen, LeavesEveryBitUnderAPlanOrEndsTheProgram) {
    Figures figures;
    const Ends ends = runAll(runPlanned, figures);
    EXPECT_GT(ends.same, 8 * ends.ended);
    EXPECT_GT(figures.planned, 0);
    EXPECT_GT(figures.recomputed, 0);
}

TEST_F(LiveUnseen, LeavesEveryBitWithinABudgetOrEndsTheProgram) {
    Figures figures;
    const Ends ends = runAll(runWithin, figures);
    EXPECT_GT(ends.same, 8 * ends.ended);
    EXPECT_GT(figures.evicted, figures.steps);
    EXPECT_GT(figures.recomputed, 0);
}

TEST_F(LiveUnseen, VerificationCatchesWhatTheGuardsAreFor) {
    for (auto* const run : {&runPlanned, &runWithin}) {
        Figures figures;
        Guards::switchOff("settings,exposures,foreign");
        const Ends ends = runAll(run, figures);
        EXPECT_GT(ends.ended, ends.same / 20);
    }
}

}  // namespace
}  // namespace hw::test
