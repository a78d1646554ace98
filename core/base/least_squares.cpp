// SPDX-License-Identifier: MIT
#include "core/base/least_squares.h"

#include <cmath>

namespace hw::core {

// By Householder reflections.
std::vector<double> leastSquares(std::vector<std::vector<double>> a, std::vector<double> b) {
    const std::size_t rows = a.size(), columns = a.front().size();
    for (std::size_t k = 0; k < columns; ++k) {
        double norm = 0;
        for (std::size_t i = k; i < rows; ++i) norm = std::hypot(norm, a[i][k]);
        if (norm == 0) continue;
        std::vector<double> v(rows, 0);
        for (std::size_t i = k; i < rows; ++i) v[i] = a[i][k];
        v[k] += v[k] > 0 ? norm : -norm;
        double square = 0;
        for (std::size_t i = k; i < rows; ++i) square += v[i] * v[i];
        auto reflect = [&](auto&& at) {
            double dot = 0;
            for (std::size_t i = k; i < rows; ++i) dot += v[i] * at(i);
            for (std::size_t i = k; i < rows; ++i) at(i) -= 2 * dot / square * v[i];
        };
        for (std::size_t j = k; j < columns; ++j)
            reflect([&](std::size_t i) -> double& { return a[i][j]; });
        reflect([&](std::size_t i) -> double& { return b[i]; });
    }
    std::vector<double> x(columns, 0);
    for (std::size_t k = columns; k-- > 0;) {
        double rest = b[k];
        for (std::size_t j = k + 1; j < columns; ++j) rest -= a[k][j] * x[j];
        x[k] = a[k][k] == 0 ? 0 : rest / a[k][k];
    }
    return x;
}

}  // namespace hw::core
