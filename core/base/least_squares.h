// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

namespace hw::core {

/// The x with the least |a x - b|; 0 where a column tells nothing that those before it do not.
/// @param a by rows, all of one length; at least as many rows as columns
std::vector<double> leastSquares(std::vector<std::vector<double>> a, std::vector<double> b);

}  // namespace hw::core
