// SPDX-License-Identifier: MIT
// Mimose's memory estimator: bytes and time of each layer as polynomials of the input size.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/units.h"
#include "core/graph/training_graph.h"

namespace hw::planners {

/// c0 + c1 x + c2 x² + …, in x = size / scale.
struct Polynomial {
    double scale = 1;
    std::vector<double> coefficients;

    double at(double size) const;
};

/// Least squares; `order` is lowered where there are too few different sizes for it.
Polynomial fitPolynomial(const std::vector<double>& sizes, const std::vector<double>& values,
                         int order);

/// Order 0…`highest` of the lowest root mean square error when one size at a time is left out; the
/// lower one where two are equal within a quarter or within rounding.
int chooseOrder(const std::vector<double>& sizes, const std::vector<double>& values,
                int highest = 3);

/// What one recorded step tells the estimator: the paper's shuttling collector measures layers
/// during a few iterations of training, here the recorder did.
struct StepProfile {
    struct Layer {
        std::string path;
        core::Bytes bytes;
        core::Nanoseconds time;
    };
    double size = 0;  // inputBytes()
    std::vector<Layer> layers;
    core::Bytes peak;  // baseline's
};
StepProfile profileStep(const core::TrainingGraph& graph);

/// Liao et al., "Mimose" (2022): polynomial regression for each layer (the paper settles on the
/// second order; here cross-validation does). What the layers do not hold (parameters, gradients,
/// kept outputs, temporaries at the peak) is a polynomial of its own.
class MimoseEstimator {
public:
    /// Errors: BadInput with fewer than three different sizes, or with steps of different layers.
    static core::Result<MimoseEstimator> fit(const std::vector<StepProfile>& steps);

    const std::vector<std::string>& layers() const { return paths_; }  // in forward order
    std::vector<core::Bytes> bytesAt(double size) const;
    std::vector<core::Nanoseconds> timesAt(double size) const;
    core::Bytes restAt(double size) const;
    core::Bytes peakAt(double size) const;  // with every layer kept
    int orderOf(std::size_t layer) const {
        return static_cast<int>(bytes_[layer].coefficients.size()) - 1;
    }

    /// Largest peak that a step was above its estimate in the fit, so that plans can leave room.
    core::Bytes residual() const { return residual_; }

private:
    std::vector<std::string> paths_;
    std::vector<Polynomial> bytes_, times_;
    Polynomial rest_;
    core::Bytes residual_;
};

/// Relative error of the estimated peak of each step when the steps of its size are left out.
/// Errors: as fit().
core::Result<std::vector<double>> leaveOneOutErrors(const std::vector<StepProfile>& steps);

}  // namespace hw::planners
