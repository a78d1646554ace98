// SPDX-License-Identifier: MIT
// How a tensor lies on its storage, as a function of the size.
#pragma once

#include <cstdint>
#include <vector>

namespace hw::core {

/// In elements. Empty sizes: not recorded, or a scalar.
struct TensorForm {
    std::vector<std::int64_t> sizes, strides;
    std::int64_t offset = 0;
};

struct SizedForm {
    std::int64_t size = 0;
    TensorForm form;
};

/// The form at `size`, from records by ascending size (at least one) with the same number of
/// dimensions. Where all of them fill their elements without a gap and in the same order, so does
/// it; else strides, as sizes and the offset, are on the straight line through the records.
TensorForm formAt(const std::vector<SizedForm>& records, std::int64_t size);

}  // namespace hw::core
