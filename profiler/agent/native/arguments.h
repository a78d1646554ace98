// SPDX-License-Identifier: MIT
// The arguments of an op as core/session/session.h describes them: encode.py in C++.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include "buffer.h"
#include "operators.h"

namespace hw::profiler::native {

class ArgumentVisitor {
public:
    virtual ~ArgumentVisitor() = default;
    /// The id of a tensor, -1 when it cannot be recorded.
    virtual std::int64_t tensor(const at::Tensor& tensor) = 0;
    /// The id of an explicit generator.
    virtual std::int64_t generator(const at::Generator& generator) = 0;
};

/// Appends {"a":[...],"k":{...}}: what Python would pass, without defaults at the end.
void encodeArguments(const Operator& op, c10::ArrayRef<const c10::IValue> values,
                     ArgumentVisitor& visitor, Buffer& out);

}  // namespace hw::profiler::native
