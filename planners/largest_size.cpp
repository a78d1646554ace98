// SPDX-License-Identifier: MIT
#include "planners/largest_size.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "planners/registry.h"

namespace hw::planners {
namespace {

using namespace hw::core;

constexpr std::int64_t kMostSize = std::int64_t{1} << 30;
constexpr double kSeconds = 10;        // of a planner, where no limit is given
constexpr double kTryShare = 1.0 / 4;  // of what is left, for one try
constexpr int kFullTries = 3;          // of a search that could go on for ever
constexpr double kOtherSeconds = 5;    // for the plan of another kind of step

/// The last size that `fits`, between `low`, which does, and `high`, which does not.
template <class Fits>
std::int64_t lastThatFits(std::int64_t low, std::int64_t high, Fits&& fits) {
    while (high - low > 1) {
        const std::int64_t middle = low + (high - low) / 2;
        (fits(middle) ? low : high) = middle;
    }
    return low;
}

/// 0: not even the smallest one.
template <class Fits>
std::int64_t lastThatFits(const Family& family, Fits&& fits) {
    std::int64_t high = family.sizes().back();
    while (high < kMostSize && fits(high)) high *= 2;
    return high >= kMostSize ? kMostSize : lastThatFits(0, high, fits);
}

/// Of what stands in for storages, the bytes are those of one size.
bool isOfOneSize(const Schedule& schedule) {
    return std::any_of(schedule.begin(), schedule.end(),
                       [](const Action& action) { return traitsOf(action.kind).standsIn; });
}

/// Kinds of steps beside the usual one: whether each has a plan within the budget.
class OtherSteps {
public:
    OtherSteps(const std::vector<Family>& families, Bytes budget, const Progress& progress)
        : families_(families), progress_(progress) {
        request_.budget = budget;
        request_.timeLimitSeconds = kOtherSeconds;
    }

    bool planned(std::int64_t size) {
        const auto [known, isNew] = planned_.try_emplace(size, true);
        if (isNew)
            known->second = std::all_of(families_.begin(), families_.end(),
                                        [&](const Family& each) { return planned(each, size); });
        return known->second;
    }

private:
    bool planned(const Family& family, std::int64_t size) const {
        const TrainingGraph graph = family.graphAt(size);
        if (evaluate(graph, baselineSchedule(graph)).peak <= request_.budget) return true;
        if (graph.floorBytes() > request_.budget) return false;
        const auto made = planWith(quickPlanner().name, graph, request_, progress_);
        return made && made->status == PlanStatus::Ok;
    }

    const std::vector<Family>& families_;
    const Progress& progress_;
    PlanRequest request_;
    std::map<std::int64_t, bool> planned_;  // by size
};

/// One planner's tries.
class Tries {
public:
    Tries(const Family& family, OtherSteps& others, const PlannerInfo& planner,
          const PlanRequest& request, const Progress& progress)
        : family_(family),
          others_(others),
          planner_(planner),
          request_(request),
          progress_(progress) {
        found_.planner = planner.name;
    }

    /// @param unplanned the largest size without a plan
    /// @param most beyond it no plan can be
    void search(std::int64_t unplanned, std::int64_t most) {
        if (!planner_.warmStarts) {
            climb(unplanned, most, {});
            return;
        }
        // First plans at once, then better ones where those end.
        climb(unplanned, most, {{"search", "first"}});
        const std::int64_t first = best();
        std::int64_t high = most + 1;
        for (int i = 0; i < kFullTries && high - best() > 1 && left() > 0; ++i) {
            const std::int64_t step = i == 0 ? std::max<std::int64_t>(1, first / 16) : 1;
            const std::int64_t wanted = std::min(best() + step, best() + (high - best()) / 2);
            if (wanted <= best()) break;
            if (fits(wanted, {}, limit_ / (kFullTries + 2)))
                stretch(high);
            else
                high = wanted;
        }
        if (best() > unplanned) improve();
    }

    /// Begins with what another planner has found.
    void beginWith(const LargestSize& other) {
        if (!other.size || !other.outcome || !other.outcome->plan) return;
        found_ = other;
        found_.planner = planner_.name;
        found_.timedOut = false;
        found_.outcome->planner = found_.outcome->plan->planner = planner_.name;
        known_ = other.outcome->plan->schedule;
    }

    Result<LargestSize> result() && {
        if (error_) return *error_;
        return std::move(found_);
    }

private:
    std::int64_t best() const { return found_.size.value_or(0); }
    double left() const {
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin_;
        return limit_ - passed.count();
    }

    void climb(std::int64_t unplanned, std::int64_t most,
               const std::map<std::string, std::string>& options) {
        const auto tried = [&](std::int64_t size) {
            return fits(size, options, left() * kTryShare);
        };
        std::int64_t high = most + 1;
        if (unplanned > best() && !tried(unplanned)) high = unplanned;
        lastThatFits(best(), high, tried);
        for (int i = 0; i < 3; ++i) {  // planners are not monotonic
            const std::int64_t before = best();
            for (const std::int64_t size : {before + 2, before + 1 + before / 20})
                if (before > 0 && size <= most && size > best()) tried(size);
            if (best() == before) break;
        }
    }

    // A plan is one at other sizes, too: the largest at which it keeps the budget.
    void stretch(std::int64_t high) {
        const Schedule& schedule = found_.outcome->plan->schedule;
        if (isOfOneSize(schedule)) return;
        known_ = schedule;
        const std::int64_t size = lastThatFits(best(), high, [&](std::int64_t wanted) {
            const Evaluation judged = evaluate(family_.graphAt(wanted), *known_);
            return judged.valid && judged.peak <= request_.budget && others_.planned(wanted);
        });
        if (size > best()) fits(size, {{"search", "first"}}, left());
    }

    // The same size in less time.
    void improve() {
        const std::int64_t size = best();
        const Nanoseconds time = found_.outcome->time;
        std::optional<Outcome> before = found_.outcome;
        known_ = found_.outcome->plan->schedule;
        if (!fits(size, {}, std::max(left(), limit_ / 4)) || found_.outcome->time > time)
            found_.outcome = std::move(before);
    }

    bool fits(std::int64_t size, const std::map<std::string, std::string>& options,
              double seconds) {
        if (error_ || progress_.cancelled() || !others_.planned(size)) return false;
        if (seconds <= 0.001) {
            found_.timedOut = true;
            return false;
        }
        const TrainingGraph graph = family_.graphAt(size);
        PlanRequest request = request_;
        request.timeLimitSeconds = seconds;
        for (const auto& [name, value] : options)
            if (planner_.takesOption(name)) request.options[name] = value;
        if (planner_.warmStarts && known_ && !isOfOneSize(*known_)) request.warmStart = known_;
        const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
        Progress inner;
        inner.cancelled = [&] {
            return progress_.cancelled() ||
                   // Who keeps to the limit by itself answers a little later than it.
                   std::chrono::steady_clock::now() > end + std::chrono::milliseconds(500);
        };
        progress_.report(std::clamp(1 - left() / limit_, 0.0, 1.0),
                         planner_.name + " at size " + std::to_string(size));
        auto outcome = planWith(planner_.name, graph, request, inner);
        if (!outcome) {
            error_ = outcome.error();
            return false;
        }
        const bool ok = outcome->status == PlanStatus::Ok;
        if (const double speed = itemsPerSecond(size, outcome->time);
            ok && family_.tellsTimes(size) && speed > found_.itemsPerSecond)
            found_.fastest = size, found_.itemsPerSecond = speed;
        if (ok) note({size, outcome->peak, outcome->time, family_.tellsTimes(size)});
        if (!ok && outcome->status != PlanStatus::Infeasible) found_.timedOut = true;
        if (ok ? size >= best() : !found_.size.has_value()) {
            found_.outcome = std::move(*outcome);
            if (ok) found_.size = size, found_.timed = family_.tellsTimes(size);
        }
        return ok;
    }

    void note(const TriedSize& tried) {
        std::vector<TriedSize>& all = found_.tried;
        const auto at = std::lower_bound(
            all.begin(), all.end(), tried,
            [](const TriedSize& a, const TriedSize& b) { return a.size < b.size; });
        if (at == all.end() || at->size != tried.size)
            all.insert(at, tried);
        else if (tried.time < at->time)
            *at = tried;
    }

    const Family& family_;
    OtherSteps& others_;
    const PlannerInfo& planner_;
    const PlanRequest& request_;
    const Progress& progress_;
    const double limit_ = request_.timeLimitSeconds.value_or(kSeconds);
    const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
    LargestSize found_;
    std::optional<Schedule> known_;  // to begin with
    std::optional<Error> error_;
};

}  // namespace

double itemsPerSecond(std::int64_t size, Nanoseconds time) {
    return time == Nanoseconds(0)
               ? 0
               : static_cast<double>(size) * 1e9 / static_cast<double>(time.count());
}

Result<LargestSizes> largestSizes(const StepFamilies& families,
                                  const std::vector<std::string>& planners,
                                  const PlanRequest& request, const Progress& progress) {
    for (const std::string& planner : planners)
        if (const auto known = makePlanner(planner); !known) return known.error();
    const Family& family = families.usual;
    const std::int64_t possible = lastThatFits(family, [&](std::int64_t size) {
        return family.graphAt(size).floorBytes() <= request.budget;
    });
    const std::int64_t unplanned = lastThatFits(family, [&](std::int64_t size) {
        const TrainingGraph graph = family.graphAt(size);
        return evaluate(graph, baselineSchedule(graph)).peak <= request.budget;
    });
    OtherSteps others(families.others, request.budget, progress);
    const auto planned = [&](std::int64_t size) { return others.planned(size); };
    const std::int64_t most =
        possible == 0 || planned(possible) ? possible : lastThatFits(0, possible, planned);
    LargestSizes found{std::vector<LargestSize>(planners.size()), {}};
    if (most < possible) found.mostOfOthers = most;
    const LargestSize* largest = nullptr;
    // Those that go on from other plans come last.
    for (const bool warm : {false, true})
        for (std::size_t i = 0; i < planners.size(); ++i) {
            const PlannerInfo& planner = *findPlanner(planners[i]);
            if (planner.warmStarts != warm) continue;
            Tries tries(family, others, planner, request, progress);
            if (warm && largest != nullptr) tries.beginWith(*largest);
            tries.search(std::min(unplanned, most), most);
            auto done = std::move(tries).result();
            if (!done) return done.error();
            found.rows[i] = std::move(*done);
            if (largest == nullptr || found.rows[i].size > largest->size) largest = &found.rows[i];
        }
    return found;
}

}  // namespace hw::planners
