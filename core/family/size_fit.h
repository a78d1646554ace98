// SPDX-License-Identifier: MIT
// A figure of a step as a function of the size, from records at some sizes.
#pragma once

#include <cstdint>
#include <vector>

namespace hw::core {

/// What was recorded at a size: bytes, or nanoseconds.
struct SizePoint {
    std::int64_t size = 0;
    std::int64_t value = 0;
};

/// How a figure that is no straight line through all records goes on between and beyond them.
enum class SizeCurve : std::uint8_t {
    Pieces,    // straight from record to record: thresholds of kernels
    Quadratic  // the parabola through the nearest three: pairs of positions of a sequence
};

/// A figure that is exactly known at each record: bytes of a storage or of a workspace.
class ExactFit {
public:
    /// `points`: by ascending, different sizes; at least one.
    ExactFit(std::vector<SizePoint> points, SizeCurve curve);

    /// A straight line through all records.
    bool affine() const { return affine_; }
    /// The recorded value at the size of a record; never below 0.
    std::int64_t at(std::int64_t size) const;

private:
    std::vector<SizePoint> points_;
    SizeCurve curve_;
    bool affine_ = true;
};

/// A measured figure, such as the time of an op: the polynomial with the least square error that
/// neither starts below 0 nor falls. Never below 0.
class MeasuredFit {
public:
    /// `points` as above. Quadratic only where there are three and the parabola rises.
    MeasuredFit(const std::vector<SizePoint>& points, SizeCurve curve);

    std::int64_t at(std::int64_t size) const;

private:
    double constant_ = 0, slope_ = 0, square_ = 0;
};

}  // namespace hw::core
