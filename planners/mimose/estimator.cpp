// SPDX-License-Identifier: MIT
#include "planners/mimose/estimator.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/least_squares.h"
#include "core/memory/evaluate.h"
#include "planners/mimose/layers.h"

namespace hw::planners {
namespace {

using namespace hw::core;

// Root mean square error of predicting each size from the others.
double leaveOneOutError(const std::vector<double>& sizes, const std::vector<double>& values,
                        int order) {
    double sum = 0;
    for (const double left : std::set<double>(sizes.begin(), sizes.end())) {
        std::vector<double> otherSizes, otherValues;
        for (std::size_t i = 0; i < sizes.size(); ++i)
            if (sizes[i] != left) otherSizes.push_back(sizes[i]), otherValues.push_back(values[i]);
        const Polynomial fit = fitPolynomial(otherSizes, otherValues, order);
        for (std::size_t i = 0; i < sizes.size(); ++i)
            if (sizes[i] == left) sum += std::pow(fit.at(left) - values[i], 2);
    }
    return std::sqrt(sum / static_cast<double>(sizes.size()));
}

Polynomial fitBest(const std::vector<double>& sizes, const std::vector<double>& values) {
    return fitPolynomial(sizes, values, chooseOrder(sizes, values));
}

}  // namespace

double Polynomial::at(double size) const {
    double value = 0;
    for (auto c = coefficients.rbegin(); c != coefficients.rend(); ++c)
        value = value * (size / scale) + *c;
    return value;
}

Polynomial fitPolynomial(const std::vector<double>& sizes, const std::vector<double>& values,
                         int order) {
    Polynomial result;
    if (sizes.empty()) return result;
    result.scale = std::max(1e-300, *std::max_element(sizes.begin(), sizes.end()));
    const auto different = std::set<double>(sizes.begin(), sizes.end()).size();
    const std::size_t terms = std::min<std::size_t>(order + 1, different);
    std::vector<std::vector<double>> powers;
    for (const double size : sizes) {
        std::vector<double> row(terms, 1);
        for (std::size_t k = 1; k < terms; ++k) row[k] = row[k - 1] * size / result.scale;
        powers.push_back(std::move(row));
    }
    result.coefficients = leastSquares(std::move(powers), values);
    return result;
}

int chooseOrder(const std::vector<double>& sizes, const std::vector<double>& values, int highest) {
    const auto different = static_cast<int>(std::set<double>(sizes.begin(), sizes.end()).size());
    double scale = 0;
    for (const double value : values) scale = std::max(scale, std::abs(value));
    std::vector<double> errors;  // by order; what is left must determine it
    for (int order = 0; order <= std::min(highest, std::max(0, different - 2)); ++order)
        errors.push_back(leaveOneOutError(sizes, values, order));
    const double good = *std::min_element(errors.begin(), errors.end()) * 1.25 + 1e-9 * scale;
    return static_cast<int>(
        std::find_if(errors.begin(), errors.end(), [&](double error) { return error <= good; }) -
        errors.begin());
}

StepProfile profileStep(const TrainingGraph& graph) {
    const RebuildInfo info = rebuildInfo(graph);
    const ForwardPass forward(graph, info);
    StepProfile profile;
    profile.size = static_cast<double>(inputBytes(graph).count());
    for (const MimoseLayer& layer : mimoseLayers(graph, info, forward))
        profile.layers.push_back({layer.path, layer.bytes, layer.time});
    profile.peak = evaluate(graph, baselineSchedule(graph)).peak;
    return profile;
}

Result<MimoseEstimator> MimoseEstimator::fit(const std::vector<StepProfile>& steps) {
    std::vector<double> sizes, rests;
    for (const StepProfile& step : steps) {
        sizes.push_back(step.size);
        rests.push_back(static_cast<double>(step.peak.count()));
        const bool same = std::equal(step.layers.begin(), step.layers.end(),
                                     steps.front().layers.begin(), steps.front().layers.end(),
                                     [](const auto& a, const auto& b) { return a.path == b.path; });
        if (!same)
            return Error{ErrorCode::BadInput, "the steps run different layers",
                         "estimate from steps of one phase of the training"};
    }
    if (std::set<double>(sizes.begin(), sizes.end()).size() < 3)
        return Error{ErrorCode::BadInput, "the steps have fewer than three different input sizes",
                     "record more steps (--steps), with batches of different lengths"};
    MimoseEstimator made;
    for (std::size_t k = 0; k < steps.front().layers.size(); ++k) {
        std::vector<double> bytes, times;
        for (std::size_t i = 0; i < steps.size(); ++i) {
            bytes.push_back(static_cast<double>(steps[i].layers[k].bytes.count()));
            times.push_back(static_cast<double>(steps[i].layers[k].time.count()));
            rests[i] -= bytes.back();
        }
        made.paths_.push_back(steps.front().layers[k].path);
        made.bytes_.push_back(fitBest(sizes, bytes));
        made.times_.push_back(fitBest(sizes, times));
    }
    made.rest_ = fitBest(sizes, rests);
    for (const StepProfile& step : steps)
        made.residual_ = std::max(made.residual_, step.peak - made.peakAt(step.size));
    return made;
}

std::vector<Bytes> MimoseEstimator::bytesAt(double size) const {
    std::vector<Bytes> result;
    result.reserve(bytes_.size());
    for (const Polynomial& fit : bytes_)
        result.emplace_back(std::max<std::int64_t>(0, std::llround(fit.at(size))));
    return result;
}

std::vector<Nanoseconds> MimoseEstimator::timesAt(double size) const {
    std::vector<Nanoseconds> result;
    result.reserve(times_.size());
    for (const Polynomial& fit : times_)
        result.emplace_back(std::max<std::int64_t>(0, std::llround(fit.at(size))));
    return result;
}

Bytes MimoseEstimator::restAt(double size) const {
    return Bytes(std::max<std::int64_t>(0, std::llround(rest_.at(size))));
}

Bytes MimoseEstimator::peakAt(double size) const {
    Bytes sum = restAt(size);
    for (const Bytes bytes : bytesAt(size)) sum += bytes;
    return sum;
}

Result<std::vector<double>> leaveOneOutErrors(const std::vector<StepProfile>& steps) {
    std::vector<double> errors;
    for (const StepProfile& left : steps) {
        std::vector<StepProfile> others;
        for (const StepProfile& step : steps)
            if (step.size != left.size) others.push_back(step);
        const auto estimator = MimoseEstimator::fit(others);
        if (!estimator) return estimator.error();
        errors.push_back(ratio(estimator->peakAt(left.size) - left.peak, left.peak));
    }
    return errors;
}

}  // namespace hw::planners
