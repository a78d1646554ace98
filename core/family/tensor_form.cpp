// SPDX-License-Identifier: MIT
#include "core/family/tensor_form.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "core/family/size_fit.h"

namespace hw::core {
namespace {

/// Dimensions from the innermost one outwards.
using Order = std::vector<std::size_t>;

Order orderOf(const TensorForm& form) {
    Order order(form.strides.size());
    std::iota(order.rbegin(), order.rend(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return form.strides[a] < form.strides[b];
    });
    return order;
}

std::vector<std::int64_t> denseStrides(const std::vector<std::int64_t>& sizes, const Order& order) {
    std::vector<std::int64_t> strides(sizes.size());
    std::int64_t elements = 1;
    for (const std::size_t d : order) {
        strides[d] = elements;
        elements *= std::max<std::int64_t>(sizes[d], 1);
    }
    return strides;
}

/// In which all records are dense.
std::optional<Order> denseOrder(const std::vector<SizedForm>& records) {
    const Order order = orderOf(records.back().form);
    const bool dense = std::all_of(records.begin(), records.end(), [&](const SizedForm& record) {
        return record.form.strides == denseStrides(record.form.sizes, order);
    });
    return dense ? std::optional(order) : std::nullopt;
}

template <class Figure>
std::int64_t straight(const std::vector<SizedForm>& records, std::int64_t size, Figure&& figure) {
    std::vector<SizePoint> points;
    for (const SizedForm& record : records) points.push_back({record.size, figure(record.form)});
    return ExactFit(std::move(points), SizeCurve::Straight).at(size);
}

}  // namespace

TensorForm formAt(const std::vector<SizedForm>& records, std::int64_t size) {
    TensorForm made = records.front().form;
    for (std::size_t d = 0; d < made.sizes.size(); ++d)
        made.sizes[d] =
            straight(records, size, [d](const TensorForm& form) { return form.sizes[d]; });
    made.offset = straight(records, size, [](const TensorForm& form) { return form.offset; });
    if (const auto order = denseOrder(records)) {
        made.strides = denseStrides(made.sizes, *order);
        return made;
    }
    for (std::size_t d = 0; d < made.strides.size(); ++d)
        made.strides[d] =
            straight(records, size, [d](const TensorForm& form) { return form.strides[d]; });
    return made;
}

}  // namespace hw::core
