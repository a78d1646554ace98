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

/// How a figure goes on between records and beyond them.
enum class SizeCurve : std::uint8_t {
    Straight,  // from record to record, and on as at the outermost two
    /// The same, but where that would begin below 0 the last record is of another kernel than the
    /// one before, and what it needs grows with the size.
    Kernels,
    Quadratic  // where no line holds all records: the parabola through the nearest three
};

/// A figure that is exactly known at each record: bytes of a storage or of a workspace.
class ExactFit {
public:
    /// `points`: by ascending, different sizes; at least one.
    ExactFit(std::vector<SizePoint> points, SizeCurve curve);

    /// A straight line through all records.
    bool affine() const { return affine_; }
    /// The recorded value at the size of a record; never below 0, nor above 10^14.
    std::int64_t at(std::int64_t size) const;

private:
    bool anotherKernel() const;

    std::vector<SizePoint> points_;
    SizeCurve curve_;
    bool affine_ = true;
};

/// A measured figure, such as the time of an op: the polynomial with the least square error that
/// neither starts below 0 nor falls, up to 10^14.
class MeasuredFit {
public:
    /// `points` as above. Quadratic only where there are three and the parabola rises.
    MeasuredFit(const std::vector<SizePoint>& points, SizeCurve curve);

    std::int64_t at(std::int64_t size) const;

private:
    double constant_ = 0, slope_ = 0, square_ = 0;
};

}  // namespace hw::core
