// SPDX-License-Identifier: MIT
#include "core/plan/plan.h"

#include <filesystem>
#include <fstream>

#include "core/memory/evaluate.h"
#include "tests/unit/graph_builder.h"
#include "tests/unit/test_data.h"

namespace hw::core {
namespace {

Plan example() {
    const TrainingGraph graph = test::chain(3, 10);
    Plan plan;
    plan.fingerprint = graph.fingerprint();
    plan.ops = 7, plan.storages = 13, plan.planner = "dtr:eqclass",
    plan.seed = 18446744073709551615u;
    plan.options = {{"dealloc", "eager"}};
    plan.budget = Bytes(1000), plan.predictedPeak = Bytes(900),
    plan.predictedTime = Nanoseconds(77);
    plan.overhead = 1.25, plan.lowerBound = Nanoseconds(70), plan.costs = CostSet::Measured;
    plan.schedule = {Action::compute(0), Action::recompute(0, {0, 2}), Action::free(3),
                     Action::encode(4, "bits", Bytes(12)), Action::decode(4)};
    plan.implementations = {{5, "direct"}};
    plan.layout = AddressLayout{Bytes(4096), {{0, Bytes(64)}}, {{Bytes(0), Bytes(128)}, {}}};
    return plan;
}

TEST(PlanFile, ComesBackAsItWasWritten) {
    const Plan plan = example();
    const auto read = parsePlan(writePlan(plan));
    ASSERT_TRUE(read) << read.error().what;
    EXPECT_EQ(writePlan(*read), writePlan(plan));
    EXPECT_EQ(read->seed, plan.seed);
    EXPECT_EQ(read->schedule[1].outputs, (ShortList<std::int32_t>{0, 2}));
    EXPECT_EQ(read->layout->offsets[0][1], Bytes(128));
}

// A file as versions before Plan::chosen wrote it, and as it still is: the menu of what was chosen
// is the text of an option.
std::string withMenu(const std::string& implementations, const std::string& menu) {
    return R"({"format": "highwater-plan", "version": 1,
 "graph": {"fingerprint":"sha256:12","ops":2,"storages":3},
 "planner": "monet", "options": {"menu":")" +
           menu + R"(","use":"algorithms"}, "seed": 0, "budget_bytes": 1000,
 "predicted": {"lower_bound_ns":null,"overhead":1.0,"peak_bytes":900,"time_ns":77},
 "schedule": [
  ["c",0],
  ["c",1]],
 "implementations": )" +
           implementations + R"(,
 "costs": "captured",
 "layout": null}
)";
}

const char* const kMenu =
    R"({\"format\":\"highwater-menu\",\"implementations\":[{\"kind\":\"algorithm\",\"name\":\"fft\",\"op\":1,\"time_ns\":3,\"workspace_bytes\":40}],\"version\":1})";

TEST(PlanFile, CarriesWhatWasChosenOfAMenuInItsOptions) {
    const std::string text = withMenu(R"({"1":"fft"})", kMenu);
    const auto plan = parsePlan(text);
    ASSERT_TRUE(plan) << plan.error().what;
    ASSERT_EQ(plan->chosen.implementations.size(), 1U);
    const Implementation& one = plan->chosen.implementations.front();
    EXPECT_EQ(one.op, 1);
    EXPECT_EQ(one.name, "fft");
    EXPECT_EQ(one.time, Nanoseconds(3));
    EXPECT_EQ(one.workspace, Bytes(40));
    EXPECT_EQ(plan->options, (std::map<std::string, std::string>{{"use", "algorithms"}}));
    EXPECT_EQ(writePlan(*plan), text);
}

TEST(PlanFile, LeavesAnOptionAloneThatNoImplementationNeeds) {
    const std::string text = withMenu("{}", "/some/file.json");
    const auto plan = parsePlan(text);
    ASSERT_TRUE(plan) << plan.error().what;
    EXPECT_TRUE(plan->chosen.empty());
    EXPECT_EQ(writePlan(*plan), text);
}

TEST(PlanFile, RefusesAMalformedMenuOfItsOwn) {
    for (
        const std::string menu :
        {"{", R"({\"format\":\"highwater-menu\",\"version\":1,\"implementations\":[{\"op\":1}]})",
         R"({\"format\":\"highwater-menu\",\"version\":1,\"implementations\":[],\"graph\":\"x\"})"}) {
        const auto plan = parsePlan(withMenu(R"({"1":"fft"})", menu));
        ASSERT_FALSE(plan) << menu;
        EXPECT_EQ(plan.error().code, ErrorCode::BadInput);
        EXPECT_NE(plan.error().what.find("option 'menu'"), std::string::npos) << plan.error().what;
    }
}

TEST(PlanFile, HasOneActionALine) {
    const std::string text = writePlan(example());
    EXPECT_NE(text.find("\n  [\"r\",0,[0,2]],\n"), std::string::npos) << text;
}

TEST(PlanFile, OffloadingTakesVersionTwoAndTheLinkThatItsTimeIsOf) {
    Plan plan = example();
    EXPECT_NE(writePlan(plan).find("\"version\": 1,"), std::string::npos);
    plan.schedule = {Action::compute(0), Action::offload(1), Action::free(1), Action::prefetch(1)};
    plan.link = Link{Bytes(20), Bytes(30), Nanoseconds(40)};
    plan.hostMemory = Bytes(50);
    const std::string text = writePlan(plan);
    EXPECT_NE(text.find("\"version\": 2,"), std::string::npos) << text;
    const auto read = parsePlan(text);
    ASSERT_TRUE(read) << read.error().what;
    EXPECT_EQ(read->link, plan.link);
    EXPECT_EQ(read->hostMemory, plan.hostMemory);
    EXPECT_EQ(read->schedule[1].kind, ActionKind::Offload);
    EXPECT_EQ(read->schedule[3].kind, ActionKind::Prefetch);
    EXPECT_EQ(writePlan(*read), text);

    const auto refused = [&](const std::string& from, const std::string& to) {
        std::string changed = text;
        changed.replace(changed.find(from), from.size(), to);
        const auto plan = parsePlan(changed);
        return plan ? std::string() : plan.error().what;
    };
    EXPECT_NE(refused("\"version\": 2", "\"version\": 1").find("schedule entry 1"),
              std::string::npos);
    EXPECT_NE(refused("\"link\"", "\"chain\"").find("link"), std::string::npos);
    EXPECT_NE(refused("second\":30", "second\":0").find("moves no bytes"), std::string::npos);
}

TEST(PlanFile, EveryCutIsRefused) {
    const std::string text = writePlan(example());
    for (std::size_t length = 0; length + 2 < text.size(); ++length) {
        const auto read = parsePlan(text.substr(0, length));
        ASSERT_FALSE(read) << length;
        EXPECT_EQ(read.error().code, ErrorCode::BadInput);
    }
}

TEST(PlanFile, NamesWhatIsWrong) {
    auto broken = [](const std::string& from, const std::string& to) {
        std::string text = writePlan(example());
        text.replace(text.find(from), from.size(), to);
        const auto read = parsePlan(text);
        return read ? std::string("accepted") : read.error().what;
    };
    EXPECT_NE(broken("[\"f\",3]", "[\"x\",3]").find("schedule entry 2"), std::string::npos);
    EXPECT_NE(broken("\"version\": 1", "\"version\": 9").find("version 9"), std::string::npos);
    EXPECT_NE(broken("highwater-plan", "other-plan").find("no Highwater plan"), std::string::npos);
    EXPECT_NE(broken("\"measured\"", "\"guessed\"").find("guessed"), std::string::npos);
    EXPECT_NE(broken("[\"f\",3]", "[\"f\",\"three\"]").find("schedule entry 2"), std::string::npos);
    // A number that an integer cannot hold is refused, not wrapped to another storage.
    for (const char* number : {"4294967299", "-2147483649", "3.5", "6.7e47", "true"})
        EXPECT_NE(broken("[\"f\",3]", std::string("[\"f\",") + number + "]")
                      .find(std::string(number).substr(0, 3)),
                  std::string::npos)
            << number;
    for (const char* version : {"66666666666666666666666666666666", "-1e300", "0.5"})
        EXPECT_NE(
            broken("\"version\": 1", std::string("\"version\": ") + version).find("malformed"),
            std::string::npos)
            << version;
    EXPECT_NE(broken("\"5\":\"direct\"", "\"5x\":\"direct\"").find("'5x'"), std::string::npos);
    EXPECT_EQ(broken("[\"f\",3]", "[\"f\",3.0]"), "accepted");
}

TEST(PlanFile, WritesWholeFilesOrNone) {
    test::TemporaryFolder folder;
    EXPECT_TRUE(writePlanFile(example(), folder / "p.plan.json"));
    EXPECT_TRUE(readPlanFile(folder / "p.plan.json"));
    const auto status = writePlanFile(example(), folder / "missing/p.plan.json");
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::BadInput);
    EXPECT_FALSE(readPlanFile(folder / "none.plan.json"));
}

TEST(PlanFile, AnotherGraphIsRefused) {
    const Plan plan = example();
    EXPECT_TRUE(requireSameGraph(plan, test::chain(3, 10)));
    const auto other = requireSameGraph(plan, test::chain(3, 11));
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().code, ErrorCode::BadInput);
    EXPECT_NE(other.error().what.find("another graph"), std::string::npos);
}

TEST(Fingerprint, IgnoresTimesAndWorkspacesOnly) {
    TrainingGraph graph = test::chain(4, 10);
    const std::string before = graph.fingerprint();
    graph.ops[0].time = Nanoseconds(99), graph.ops[0].workspace = Bytes(5);
    EXPECT_EQ(graph.fingerprint(), before);
    graph.ops[0].name = "other";
    EXPECT_NE(graph.fingerprint(), before);
    EXPECT_EQ(before.size(), std::string("sha256:").size() + 64);
}

}  // namespace
}  // namespace hw::core
