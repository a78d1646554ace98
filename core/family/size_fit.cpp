// SPDX-License-Identifier: MIT
#include "core/family/size_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/least_squares.h"

namespace hw::core {
namespace {

constexpr double kMost = 1e14;  // bytes or nanoseconds of one op: sums of it are still in range

std::int64_t inRange(double value) {
    return std::llround(std::clamp(value, 0.0, kMost));
}

// Divided differences of the points, which lie at `at` and behind it, evaluated at `size`.
double interpolated(const SizePoint* at, std::size_t count, double size) {
    std::array<double, 3> difference{};
    for (std::size_t i = 0; i < count; ++i) difference[i] = static_cast<double>(at[i].value);
    for (std::size_t order = 1; order < count; ++order)
        for (std::size_t i = count; i-- > order;)
            difference[i] = (difference[i] - difference[i - 1]) /
                            static_cast<double>(at[i].size - at[i - order].size);
    double value = 0;
    for (std::size_t i = count; i-- > 0;)
        value = value * (size - static_cast<double>(at[i].size)) + difference[i];
    return value;
}

// The weights of the powers of size / scale that `chosen` names; the others are 0.
std::array<double, 3> weightsOf(const std::vector<SizePoint>& points, double scale,
                                const std::vector<int>& chosen) {
    std::vector<std::vector<double>> rows;
    std::vector<double> values;
    for (const SizePoint& point : points) {
        auto& row = rows.emplace_back();
        for (const int power : chosen)
            row.push_back(std::pow(static_cast<double>(point.size) / scale, power));
        values.push_back(static_cast<double>(point.value));
    }
    const std::vector<double> solved = leastSquares(std::move(rows), std::move(values));
    std::array<double, 3> weights{};
    for (std::size_t k = 0; k < chosen.size(); ++k) weights[chosen[k]] = solved[k];
    return weights;
}

double squareError(const std::vector<SizePoint>& points, double scale,
                   const std::array<double, 3>& weights) {
    double sum = 0;
    for (const SizePoint& point : points) {
        const double x = static_cast<double>(point.size) / scale;
        const double off =
            weights[0] + (weights[1] + weights[2] * x) * x - static_cast<double>(point.value);
        sum += off * off;
    }
    return sum;
}

}  // namespace

ExactFit::ExactFit(std::vector<SizePoint> points, SizeCurve curve)
    : points_(std::move(points)), curve_(curve) {
    for (const SizePoint& point : points_) {
        const double line = interpolated(points_.data(), std::min<std::size_t>(2, points_.size()),
                                         static_cast<double>(point.size));
        affine_ = affine_ && std::llround(line) == point.value;
    }
}

bool ExactFit::anotherKernel() const {
    return curve_ == SizeCurve::Kernels && points_.size() > 1 &&
           (points_.size() == 2 || !affine_) && interpolated(&points_.back() - 1, 2, 0) < 0;
}

std::int64_t ExactFit::at(std::int64_t size) const {
    if (const SizePoint& last = points_.back(); size > last.size && anotherKernel())
        return inRange(static_cast<double>(last.value) * static_cast<double>(size) /
                       static_cast<double>(last.size));
    std::size_t count = std::min<std::size_t>(points_.size(), 2);
    if (!affine_ && curve_ == SizeCurve::Quadratic) count = 3;
    // The records around the size, or the outermost ones on its side.
    const auto behind = std::lower_bound(
        points_.begin(), points_.end(), size,
        [](const SizePoint& point, std::int64_t wanted) { return point.size < wanted; });
    const auto ahead = static_cast<std::size_t>(behind - points_.begin());
    const std::size_t from =
        affine_ ? 0 : std::min(ahead == 0 ? 0 : ahead - 1, points_.size() - count);
    return inRange(interpolated(&points_[from], count, static_cast<double>(size)));
}

// Every choice of powers is tried: of the few whose weights are all positive one is the best.
MeasuredFit::MeasuredFit(const std::vector<SizePoint>& points, SizeCurve curve) {
    const double scale = static_cast<double>(points.back().size);
    const bool quadratic = curve == SizeCurve::Quadratic && points.size() >= 3;
    double least = std::numeric_limits<double>::infinity();
    for (int subset = 1; subset < (quadratic ? 8 : 4); ++subset) {
        std::vector<int> chosen;
        for (int power = 0; power < 3; ++power)
            if ((subset >> power & 1) != 0) chosen.push_back(power);
        if (chosen.size() > points.size()) continue;
        const std::array<double, 3> weights = weightsOf(points, scale, chosen);
        if (std::any_of(weights.begin(), weights.end(), [](double w) { return w < 0; })) continue;
        const double error = squareError(points, scale, weights);
        if (error >= least) continue;
        least = error;
        constant_ = weights[0];
        slope_ = weights[1] / scale;
        square_ = weights[2] / (scale * scale);
    }
}

std::int64_t MeasuredFit::at(std::int64_t size) const {
    const auto x = static_cast<double>(size);
    return inRange(constant_ + (slope_ + square_ * x) * x);
}

}  // namespace hw::core
