// SPDX-License-Identifier: MIT
// Packs allocation problems and the plans of recorded steps, and prints a table or CSV.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "core/import/allocation_csv.h"
#include "core/import/import.h"
#include "core/memory/plan_layout.h"
#include "planners/plan_with.h"

namespace {

using namespace hw::core;

constexpr const char* kPlanners[] = {"chen-sqrt", "chen-greedy", "chen-cheap",  "chen-recursive",
                                     "echo",      "dtr:full",    "dtr:eqclass", "dtr:local",
                                     "dtr:lru",   "dtr:largest", "dtr:msps",    "mimose",
                                     "highwater"};
constexpr double kSeconds = 3;  // for planners that search

bool csv = false;

void row(const std::string& name, const std::vector<Block>& blocks, const PackOptions& options) {
    const auto begin = std::chrono::steady_clock::now();
    const Packing packing = packBlocks(blocks, options);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    const double above = (ratio(packing.arena, packing.lowerBound) - 1) * 100;
    std::printf(csv ? "%s,%zu,%lld,%lld,%.3f,%.2f\n" : "%-32s %7zu %14lld %14lld %8.3f %8.2f\n",
                name.c_str(), blocks.size(), static_cast<long long>(packing.arena.count()),
                static_cast<long long>(packing.lowerBound.count()), above, elapsed.count());
    std::fflush(stdout);
}

void problem(const std::string& path, const std::string& name) {
    const auto read = readAllocationCsv(path);
    if (!read) return void(std::fprintf(stderr, "skipped: %s\n", read.error().what.c_str()));
    PackOptions options;
    options.alignment = Bytes(1);
    options.workLimit = 8 * PackOptions::kDefaultWork;
    options.capacity = Bytes(1 << 20);
    row(name, read->blocks, options);
}

void plans(const std::string& path, const std::string& name) {
    auto session = openAny(path);
    if (!session) return void(std::fprintf(stderr, "skipped: %s\n", session.error().what.c_str()));
    const auto step = session->lastStep();
    if (!step) return void(std::fprintf(stderr, "skipped: %s\n", step.error().what.c_str()));
    const auto graph = loadGraph(*session, *step);
    if (!graph) return void(std::fprintf(stderr, "skipped: %s\n", graph.error().what.c_str()));
    const auto peak = static_cast<double>(evaluate(*graph, baselineSchedule(*graph)).peak.count());
    for (const char* planner : kPlanners)
        for (const double share : {0.7, 0.5}) {
            hw::planners::PlanRequest request;
            request.budget = Bytes(static_cast<std::int64_t>(peak * share));
            request.timeLimitSeconds = kSeconds;
            const auto outcome = hw::planners::planWith(planner, *graph, request);
            char title[80];
            std::snprintf(title, sizeof title, "%s %s %.1f", name.c_str(), planner, share);
            if (outcome && outcome->plan)
                row(title, scheduleBlocks(*graph, outcome->plan->schedule).blocks, {});
            else
                std::fprintf(stderr, "%s: no plan\n", title);
        }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: %s FOLDER_WITH_SAMPLE_DATA [--csv] [SESSION ...]\n", argv[0]);
        return 2;
    }
    const std::string data = argv[1];
    std::vector<std::string> sessions(argv + 2, argv + argc);
    csv = !sessions.empty() && sessions.front() == "--csv";
    if (csv) sessions.erase(sessions.begin());
    std::printf(csv ? "%s,%s,%s,%s,%s,%s\n" : "%-32s %7s %14s %14s %8s %8s\n", "problem", "blocks",
                "arena", "bound", "above_%", "seconds");
    for (const char* name : {"A", "B", "C", "D", "E", "F"})
        problem(data + "/minimalloc/" + name + ".1048576.csv", name);
    for (const char* name : {"resnet32", "unet", "transformer", "treelstm"})
        plans(data + "/simrd/" + name + ".log.gz", name);
    for (const std::string& path : sessions)
        plans(path, std::filesystem::path(path).stem().string());
}
