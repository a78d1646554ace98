// SPDX-License-Identifier: MIT
// Linear and mixed-integer programs, and the one place that calls the solver (HiGHS).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/units.h"

class HighsLp;

namespace hw::planners {

/// Whether this build has the solver.
bool haveSolver();

enum class SolveStatus {
    Optimal,     // solved to its end
    Infeasible,  // proven: there is no point
    Limit,       // a limit ended it; the bound holds, and there may be a point
    Cancelled,   // as with a limit
    Failed,      // the solver gave up, or this build has none
};

/// Where a solve ends, whichever comes first.
struct SolveLimits {
    static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

    double seconds = INFINITY;
    // Deterministic, unlike the time.
    std::int64_t nodes = kNone;       // of branch and bound
    std::int64_t iterations = kNone;  // of the simplex method; looked at between two relaxations

    /// No clock: `nodes`, and as many iterations as take minutes on the largest of our programs.
    static SolveLimits deterministic(std::int64_t nodes) { return {INFINITY, nodes, 2'000'000}; }
};

struct SolveOptions {
    SolveLimits limits;
    bool integer = true;        // false: the linear relaxation
    double relativeGap = 1e-4;  // of branch and bound
    int threads = 1;            // more are not deterministic
    /// Column and value of a point to begin with; what is left out follows from the rest.
    std::vector<std::pair<int, double>> start;
    /// Asked before the solve, at every iteration of the simplex method, and during branch and
    /// bound after every relaxation: a relaxation of an integer program runs to its end.
    std::function<bool()> cancelled = [] { return false; };
};

struct LinearSolution {
    SolveStatus status = SolveStatus::Failed;
    double bound = -INFINITY;                   // proven: no point has a lower objective
    std::optional<std::vector<double>> values;  // per column: the best point found
};

/// min cost·x + offset, lower <= x <= upper, rowLower <= A x <= rowUpper; some columns of x whole.
/// Built by adding columns, and rows entry by entry.
class LinearProgram {
public:
    int addColumn(double cost, double lower, double upper, bool whole);
    void beginRow(double lower, double upper);
    /// Adds `value` times the column to the last row; at most once a row and column.
    void addEntry(int column, double value);

    std::size_t columns() const { return cost_.size(); }
    std::size_t rows() const { return rowLower_.size(); }
    double lower(int column) const { return lower_[column]; }
    double upper(int column) const { return upper_[column]; }
    void setLower(int column, double lower) { lower_[column] = lower; }
    void setUpper(int column, double upper) { upper_[column] = upper; }
    void addCost(int column, double cost) { cost_[column] += cost; }
    void addOffset(double cost) { offset_ += cost; }

    LinearSolution solve(const SolveOptions& options) const;

    bool operator==(const LinearProgram&) const = default;

private:
    LinearSolution solveEmpty() const;
    void fill(HighsLp& model, bool integer) const;

    std::vector<double> cost_, lower_, upper_, rowLower_, rowUpper_;
    std::vector<bool> whole_;
    std::vector<int> rowStart_, index_;  // of the entries, row by row
    std::vector<double> value_;
    double offset_ = 0;
};

/// Time in the objective: a thousand for the baseline's, which suits the solver's tolerances.
class ProgramTime {
public:
    explicit ProgramTime(core::Nanoseconds baseline)
        : baseline_(std::max(1.0, static_cast<double>(baseline.count()))) {}

    double operator()(core::Nanoseconds time) const {
        return static_cast<double>(time.count()) / baseline_ * kBaseline;
    }
    /// The time that a bound on the objective proves, rounded to the safe side.
    core::Nanoseconds atLeast(double bound) const;

private:
    static constexpr double kBaseline = 1000;
    double baseline_;
};

}  // namespace hw::planners
