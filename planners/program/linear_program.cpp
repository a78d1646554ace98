// SPDX-License-Identifier: MIT
#include "planners/program/linear_program.h"

#include <algorithm>

#ifdef HIGHWATER_HIGHS
#include <Highs.h>
#endif

namespace hw::planners {

int LinearProgram::addColumn(double cost, double lower, double upper, bool whole) {
    cost_.push_back(cost);
    lower_.push_back(lower);
    upper_.push_back(upper);
    whole_.push_back(whole);
    return static_cast<int>(cost_.size()) - 1;
}

void LinearProgram::beginRow(double lower, double upper) {
    rowStart_.push_back(static_cast<int>(index_.size()));
    rowLower_.push_back(lower);
    rowUpper_.push_back(upper);
}

void LinearProgram::addEntry(int column, double value) {
    index_.push_back(column);
    value_.push_back(value);
}

// Without columns every row is 0.
LinearSolution LinearProgram::solveEmpty() const {
    for (std::size_t row = 0; row < rows(); ++row)
        if (rowLower_[row] > 0 || rowUpper_[row] < 0) return {SolveStatus::Infeasible, {}, {}};
    return {SolveStatus::Optimal, offset_, std::vector<double>{}};
}

core::Nanoseconds ProgramTime::atLeast(double bound) const {
    constexpr double kSolverTolerance = 1e-6;  // of the baseline's time, above the solver's own
    const double safe = bound / kBaseline - kSolverTolerance;
    return core::Nanoseconds(
        static_cast<std::int64_t>(std::floor(std::max(0.0, safe) * baseline_)));
}

#ifndef HIGHWATER_HIGHS

bool haveSolver() {
    return false;
}

LinearSolution LinearProgram::solve(const SolveOptions&) const {
    return {};
}

#else

namespace {

// Ends a running solve, and remembers why.
class Interrupt {
public:
    explicit Interrupt(const SolveOptions& options) : options_(options) {}

    void attachTo(Highs& highs) {
        highs.setCallback([this](int type, const std::string&, const HighsCallbackOutput* out,
                                 HighsCallbackInput* in, void*) {
            cancelled_ = cancelled_ || options_.cancelled();
            const bool spent = type == kCallbackMipInterrupt &&
                               out->mip_total_lp_iterations >= options_.limits.iterations;
            in->user_interrupt = cancelled_ || spent ? 1 : 0;
        });
        for (const auto type :
             {kCallbackSimplexInterrupt, kCallbackIpmInterrupt, kCallbackMipInterrupt})
            highs.startCallback(type);
    }
    bool cancelled() const { return cancelled_; }

private:
    const SolveOptions& options_;
    bool cancelled_ = false;
};

void setOptions(Highs& highs, const SolveOptions& options) {
    const auto whole = [](std::int64_t limit) {
        return static_cast<HighsInt>(std::min<std::int64_t>(limit, kHighsIInf));
    };
    highs.setOptionValue("output_flag", false);
    highs.setOptionValue("threads", options.threads);
    highs.setOptionValue("time_limit", std::max(0.0, options.limits.seconds));
    highs.setOptionValue("mip_rel_gap", options.relativeGap);
    highs.setOptionValue("mip_max_nodes", whole(options.limits.nodes));
    // In branch and bound it would spoil single relaxations; see Interrupt.
    if (!options.integer)
        highs.setOptionValue("simplex_iteration_limit", whole(options.limits.iterations));
}

void start(Highs& highs, const std::vector<std::pair<int, double> >& point) {
    std::vector<HighsInt> columns;
    std::vector<double> values;
    for (const auto& [column, value] : point) {
        columns.push_back(column);
        values.push_back(value);
    }
    highs.setSolution(static_cast<HighsInt>(columns.size()), columns.data(), values.data());
}

SolveStatus statusOf(HighsModelStatus status, bool cancelled) {
    switch (status) {
        case HighsModelStatus::kOptimal:
            return SolveStatus::Optimal;
        case HighsModelStatus::kInfeasible:
            return SolveStatus::Infeasible;
        case HighsModelStatus::kInterrupt:
            return cancelled ? SolveStatus::Cancelled : SolveStatus::Limit;
        case HighsModelStatus::kTimeLimit:
        case HighsModelStatus::kIterationLimit:
        case HighsModelStatus::kSolutionLimit:
            return SolveStatus::Limit;
        default:
            return SolveStatus::Failed;
    }
}

}  // namespace

bool haveSolver() {
    return true;
}

void LinearProgram::fill(HighsLp& model, bool integer) const {
    model.num_col_ = static_cast<HighsInt>(columns());
    model.num_row_ = static_cast<HighsInt>(rows());
    model.col_cost_ = cost_;
    model.col_lower_ = lower_;
    model.col_upper_ = upper_;
    model.row_lower_ = rowLower_;
    model.row_upper_ = rowUpper_;
    model.offset_ = offset_;
    HighsSparseMatrix& matrix = model.a_matrix_;
    matrix.format_ = MatrixFormat::kRowwise;
    matrix.num_col_ = model.num_col_;
    matrix.num_row_ = model.num_row_;
    matrix.start_.assign(rowStart_.begin(), rowStart_.end());
    matrix.start_.push_back(static_cast<HighsInt>(index_.size()));
    matrix.index_.assign(index_.begin(), index_.end());
    matrix.value_ = value_;
    if (!integer) return;
    for (const bool whole : whole_)
        model.integrality_.push_back(whole ? HighsVarType::kInteger : HighsVarType::kContinuous);
}

LinearSolution LinearProgram::solve(const SolveOptions& options) const {
    LinearSolution solution;
    if (options.cancelled()) {
        solution.status = SolveStatus::Cancelled;
        return solution;
    }
    if (columns() == 0) return solveEmpty();
    Interrupt interrupt(options);
    Highs highs;
    setOptions(highs, options);
    interrupt.attachTo(highs);
    HighsLp model;
    fill(model, options.integer);
    if (highs.passModel(std::move(model)) == HighsStatus::kError) return solution;
    if (options.integer && !options.start.empty()) start(highs, options.start);
    if (highs.run() == HighsStatus::kError) return solution;
    solution.status = statusOf(highs.getModelStatus(), interrupt.cancelled());
    if (solution.status == SolveStatus::Infeasible || solution.status == SolveStatus::Failed)
        return solution;
    const HighsInfo& info = highs.getInfo();
    if (options.integer)
        solution.bound = info.mip_dual_bound;
    else if (solution.status == SolveStatus::Optimal)
        solution.bound = info.objective_function_value;
    if (!std::isfinite(solution.bound)) solution.bound = -INFINITY;
    if (info.primal_solution_status == kSolutionStatusFeasible)
        solution.values = highs.getSolution().col_value;
    return solution;
}

#endif

}  // namespace hw::planners
