// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>

namespace hw::planners {

/// What DTR evicts next: the storage with the lowest score, among equals the one that became
/// evictable last. Names and formulas of Kirisame et al. (ICLR 2021), section 4.1 and appendix;
/// c is the compute of a storage (ns), m its size (bytes), s its staleness (ns since its last use).
enum class DtrHeuristic : std::uint8_t {
    Full,           ///< (c + c of the evicted neighbourhood) / (m s)
    EqClass,        ///< the same by union-find over the evicted storages, cheap and approximate
    Local,          ///< c / (m s)
    Lru,            ///< 1 / s: least recently used first
    Largest,        ///< 1 / m: largest first
    Msps,           ///< (c + c of the evicted ancestors) / m
    Random,         ///< uniform, from the seed
    Neighbourhood,  ///< (c + c of the evicted neighbourhood) / m: h_e* of Theorem 3.1; no planner
};

}  // namespace hw::planners
