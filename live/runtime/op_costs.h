// SPDX-License-Identifier: MIT
// What ops on a GPU take there: when they return, they have been queued only. So the first ones of
// each kind are waited for, and later ones taken to be like them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "operators.h"
#include "values.h"

namespace hw::live::runtime {

class OpCosts {
public:
    struct Known {
        std::int64_t ns = INT64_MAX;  // the least of the measured
        int times = 0;

        std::int64_t nsOr(std::int64_t unmeasured) const { return times > 0 ? ns : unmeasured; }
        /// The first runs of a kernel load it, and search for a better one.
        bool wanted() const { return times < 3; }
        void add(std::int64_t measured) {
            ns = std::min(ns, measured);
            ++times;
        }
    };
    /// Of ops of that name on tensors of these sizes.
    Known& of(const profiler::native::Operator& op, const profiler::native::Tensors& tensors) {
        std::uint64_t key = reinterpret_cast<std::uintptr_t>(&op);
        const auto mix = [&key](std::int64_t value) {
            key = (key ^ static_cast<std::uint64_t>(value)) * 0x9e3779b97f4a7c15ull;
            key ^= key >> 29;
        };
        for (const c10::TensorImpl* const tensor : tensors) {
            mix(static_cast<std::int64_t>(c10::typeMetaToScalarType(tensor->dtype())));
            for (const std::int64_t size : tensor->sizes()) mix(size);
            mix(-1);
        }
        return known_[key];
    }

private:
    std::unordered_map<std::uint64_t, Known> known_;
};

}  // namespace hw::live::runtime
