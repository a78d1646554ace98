// SPDX-License-Identifier: MIT
// What lies on the dispatcher's stack: the arguments of an op before it runs, its results after.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/SmallVector.h>

namespace hw::profiler::native {

using Values = c10::ArrayRef<const c10::IValue>;
/// Alive as long as what they are in.
using Tensors = c10::SmallVector<const c10::TensorImpl*, 8>;

/// Calls `visit` with every defined tensor of the value, in order.
template <typename Visit>
void eachTensor(const c10::IValue& value, const Visit& visit) {
    if (value.isTensor()) {
        if (value.toTensor().defined()) visit(value.toTensor());
    } else if (value.isList()) {
        for (const c10::IValue& item : value.toListRef()) eachTensor(item, visit);
    } else if (value.isTuple()) {
        for (const c10::IValue& item : value.toTupleRef().elements()) eachTensor(item, visit);
    }
}

template <typename Visit>
void eachTensor(Values values, const Visit& visit) {
    for (const c10::IValue& value : values) eachTensor(value, visit);
}

}  // namespace hw::profiler::native
