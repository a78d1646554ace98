// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/memory/layout.h"

#include <chrono>
#include <cstdio>
#include <iostream>
#include <numeric>

#include "app/cli.h"
#include "core/import/allocation_csv.h"
#include "core/memory/caching_allocator.h"
#include "core/memory/plan_layout.h"
#include "core/session/signatures.h"

namespace hw::app {
namespace {

using namespace hw::core;

// Without a limit of the user's: some ten seconds for the best arena, a minute to meet a capacity.
constexpr std::int64_t kWork = 2 * PackOptions::kDefaultWork;
constexpr std::int64_t kWorkForCapacity = 8 * PackOptions::kDefaultWork;

constexpr Bytes kLargestAlignment{std::int64_t{1} << 30};

struct LayoutArguments {
    std::string file, plan, capacity, output;
    std::optional<std::int64_t> step, workLimit, alignment;
    std::optional<double> timeLimit;
    bool inPlace = false;
};

struct Packed {
    Packing packing;
    double seconds = 0;
};

Result<PackOptions> packOptions(const LayoutArguments& arguments, std::int64_t defaultAlignment) {
    PackOptions options;
    options.alignment = Bytes(arguments.alignment.value_or(defaultAlignment));
    if (options.alignment < Bytes(1) || options.alignment > kLargestAlignment)
        return Error{ErrorCode::Usage, "the alignment must lie between 1 and 1 GiB",
                     "64 is the executor's on a CPU, 512 on CUDA"};
    if (!arguments.capacity.empty()) {
        const auto capacity = parseBytes(arguments.capacity);
        if (!capacity) return capacity.error();
        options.capacity = *capacity;
    }
    options.workLimit = arguments.workLimit.value_or(options.capacity ? kWorkForCapacity : kWork);
    if (arguments.timeLimit) {
        options.timeLimitSeconds = *arguments.timeLimit;
        if (!arguments.workLimit) options.workLimit = INT64_MAX;
    }
    options.cancelled = terminalProgress().cancelled;
    return options;
}

Packed pack(const std::vector<Block>& blocks, const PackOptions& options) {
    const auto begin = std::chrono::steady_clock::now();
    Packing packing = packBlocks(blocks, options);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    return {std::move(packing), elapsed.count()};
}

// Prints what is known; exit 3 when the capacity is not met.
int show(const Packed& packed, const std::vector<Block>& blocks, const PackOptions& options,
         const std::string& file, std::size_t merged, const LayoutArguments& arguments,
         const Common& common) {
    const Packing& packing = packed.packing;
    const Fragmentation figures = fragmentation(blocks, packing);
    const CachingAllocatorStats cached = replayBlocks(blocks);
    const bool over = options.capacity && packing.arena > *options.capacity;
    if (common.json) {
        Json json{{"arena_bytes", packing.arena.count()},
                  {"lower_bound_bytes", packing.lowerBound.count()},
                  {"optimal", packing.optimal},
                  {"solve_seconds", packed.seconds},
                  {"blocks", blocks.size()},
                  {"live_peak_bytes", figures.livePeak.count()},
                  {"fragmentation", figures.overhead},
                  {"largest_hole_bytes", figures.largestHoleAtPeak.count()},
                  {"caching_allocator", cachingAllocatorJson(cached)}};
        if (options.capacity) json["capacity_bytes"] = options.capacity->count();
        if (arguments.inPlace) json["merged_blocks"] = merged;
        if (!file.empty() && !over) json["file"] = file;
        answerWith(json);
    }
    if (over) {
        const bool impossible = packing.lowerBound > *options.capacity;
        return fail({ErrorCode::NoPlan,
                     "the arena needs " + std::to_string(packing.arena.count()) +
                         " bytes, the capacity is " + std::to_string(options.capacity->count()),
                     impossible ? "no layout needs less than " +
                                      std::to_string(packing.lowerBound.count()) + " bytes"
                                : "give it longer with --time-limit, or more capacity"});
    }
    if (common.json) return 0;
    char share[32];
    std::snprintf(share, sizeof share, "%.2f %%", figures.overhead * 100);
    std::cout << blocks.size() << " blocks in " << humanBytes(packing.arena) << " ("
              << packing.arena.count() << " bytes), " << share << " above the live peak, "
              << (packing.optimal ? "optimal"
                                  : "no layout is below " + humanBytes(packing.lowerBound))
              << '\n';
    std::snprintf(share, sizeof share, "%.1f %%", cached.fragmentation() * 100);
    std::cout << "PyTorch's caching allocator would reserve " << humanBytes(cached.peakReserved)
              << ", " << share << " of it never used\n";
    if (arguments.inPlace) std::cout << merged << " outputs take the place of an input\n";
    if (!file.empty()) std::cout << "written to " << file << '\n';
    return 0;
}

bool fits(const Packing& packing, const PackOptions& options) {
    return !options.capacity || packing.arena <= *options.capacity;
}

int runProblem(const LayoutArguments& arguments, const Common& common) {
    if (arguments.inPlace)
        return fail({ErrorCode::Usage, "--in-place needs a session and a plan",
                     "a table of blocks does not say which op may overwrite which"});
    if (isDatabaseFile(arguments.file))
        return fail({ErrorCode::Usage, "a session needs a plan to lay out",
                     "highwater layout SESSION PLAN; 'plan --planner none' makes the baseline's"});
    auto options = packOptions(arguments, 1);
    if (!options) return fail(options.error());
    const auto problem = readAllocationCsv(arguments.file);
    if (!problem) return fail(problem.error());
    const std::int64_t shared = std::lcm(options->alignment.count(), problem->alignment.count());
    if (Bytes(shared) > kLargestAlignment)
        return fail(
            badInput("--alignment and the file's alignments have no common multiple of up "
                     "to 1 GiB",
                     "leave --alignment out"));
    options->alignment = Bytes(shared);
    Packed packed = pack(problem->blocks, *options);
    if (problem->mixedAlignment) {
        // Every block got the largest alignment: the search's bound is not one of the problem.
        packed.packing.lowerBound = highestLoad(problem->blocks);
        packed.packing.optimal = packed.packing.arena == packed.packing.lowerBound;
    }
    if (!arguments.output.empty() && fits(packed.packing, *options))
        if (const Status written =
                writeOffsetCsv(arguments.output, problem->ids, packed.packing.offsets);
            !written)
            return fail(written.error());
    return show(packed, problem->blocks, *options, arguments.output, 0, arguments, common);
}

Status writeLayout(const LayoutArguments& arguments, Plan plan, const ScheduleBlocks& made,
                   const Packing& packing) {
    if (arguments.output.ends_with(".json")) {
        plan.layout = addressLayout(made, packing);
        return writePlanFile(plan, arguments.output);
    }
    std::vector<Bytes> offsets;
    offsets.reserve(made.blocks.size());
    for (const std::size_t place : made.placedIn) offsets.push_back(packing.offsets[place]);
    return writeOffsetCsv(arguments.output, blockNames(made), offsets);
}

int runPlan(const LayoutArguments& arguments, const Common& common) {
    const auto options = packOptions(arguments, kArenaAlignment.count());
    if (!options) return fail(options.error());
    if (arguments.inPlace && arguments.output.ends_with(".json"))
        return fail({ErrorCode::Usage, "--in-place is a what-if figure, no layout to run",
                     "write the offsets as F.csv, or leave --in-place out"});
    const auto plan = readPlanFile(arguments.plan);
    if (!plan) return fail(plan.error());
    auto step = loadStep(arguments.file, arguments.step, plan->costs);
    if (!step) return fail(step.error());
    if (const Status same = requireSameGraph(*plan, step->graph); !same) return fail(same.error());
    if (const Status valid = requireValid(evaluate(step->graph, plan->schedule)); !valid)
        return fail(valid.error());

    const auto signatures = loadSignatures(step->session, step->graph);
    if (!signatures) return fail(signatures.error());
    const ScheduleBlocks made = scheduleBlocks(
        step->graph, plan->schedule, {.signatures = &*signatures, .inPlace = arguments.inPlace});
    const Packed packed = pack(made.blocks, *options);
    if (!arguments.output.empty() && fits(packed.packing, *options))
        if (const Status written = writeLayout(arguments, *plan, made, packed.packing); !written)
            return fail(written.error());
    return show(packed, made.blocks, *options, arguments.output, made.merged, arguments, common);
}

}  // namespace

void addLayout(CLI::App& app, Common& common) {
    auto* command = addCommand(app, common, "layout",
                               "Give every allocation of a plan, or of a table, its address");
    auto arguments = std::make_shared<LayoutArguments>();
    command
        ->add_option(
            "FILE", arguments->file,
            "The session of a plan, or a table id,lower,upper,size (CSV), with a column alignment "
            "where it has one")
        ->required();
    command->add_option("PLAN", arguments->plan, "The plan file");
    command->add_option("--capacity", arguments->capacity,
                        "Stop when the arena is no larger; exit 3 when it stays larger");
    command
        ->add_option("--time-limit", arguments->timeLimit,
                     "Seconds that the search may take (default: no limit but --work-limit)")
        ->check(positive(kMostSeconds));
    command->add_option("--work-limit", arguments->workLimit,
                        "Units of work that the search may take: the same layout each time");
    command->add_option("--alignment", arguments->alignment,
                        "Of offsets, in bytes (default: 64 for a plan, 1 for a table)");
    command->add_flag("--in-place", arguments->inPlace,
                      "What if element-wise ops wrote over an input that dies with them");
    command->add_option("--step", arguments->step, "The step (default: the last complete one)");
    command->add_option("-o,--output", arguments->output,
                        "id,offset as F.csv, or the plan with its layout as X.plan.json");
    command->callback([arguments, &common] {
        common.exitCode =
            arguments->plan.empty() ? runProblem(*arguments, common) : runPlan(*arguments, common);
    });
}

}  // namespace hw::app
