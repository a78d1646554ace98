// SPDX-License-Identifier: MIT
// Recorded arguments (JSON, core/session/session.h) become what a boxed kernel takes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "executor/replay/torch_adapter.h"

namespace hw::executor {

/// One argument: a value, or tensors that are looked up when the op runs.
struct OpArgument {
    enum class Kind { Value, Tensor, TensorList, OptionalTensorList } kind = Kind::Value;
    c10::IValue value;
    std::vector<core::TensorIndex> tensors;  // kNone: None
    bool written = false;                    // the schema says that the op writes it
};

/// An op ready to be called.
struct CallableOp {
    c10::OperatorHandle handle;
    std::vector<OpArgument> arguments;
    std::vector<std::int64_t> generators;         // that it draws from, ids of the session
    std::vector<std::size_t> leftOutOnRecompute;  // arguments that become None (running statistics)
    bool skipped = false;                         // a profiler mark: nothing to run
    bool fromRecord = false;                      // its results are views, as recorded
    std::function<void(c10::Stack&)> kernel;      // none: the op of the handle, as captured
};

/// Explicit generators of the step by session id; 0 is the default one.
using Generators = std::map<std::int64_t, at::Generator>;

/// Resolves op `index` and parses its arguments by the types of its schema. Numbers in place of
/// tensors become wrapped numbers, made now so that the op's own allocations stay as recorded.
/// Errors: BadInput naming the op and the argument.
core::Result<CallableOp> makeCallable(const Step& step, core::OpIndex index,
                                      const Generators& generators);

}  // namespace hw::executor
