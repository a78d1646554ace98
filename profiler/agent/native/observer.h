// SPDX-License-Identifier: MIT
// Sees every op that the training thread dispatches, the threads of its backward included, and
// records what the dispatch mode of capture.py would: which storages it reads, makes and writes,
// how long it takes, what it allocates.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/util/FunctionRef.h>

#include "operators.h"
#include "session.h"
#include "values.h"

namespace hw::profiler::native {

/// Once, before the others. False: the framework's dispatcher has no place left for us.
bool prepare();
/// On the thread that is to be recorded, outside of any op.
void observe();
/// An op that comes by: what it is, and the keys that are left to it.
struct Passing {
    const c10::OperatorHandle& handle;
    const Operator& known;
    c10::DispatchKeySet below;
};
/// Instead of recording: what is called runs the op.
using OpHook = void (*)(const Passing& op, torch::jit::Stack* stack);
/// What a typed op is called with.
struct Arguments {
    Tensors tensors;  // all that are defined, in order
    at::Device device{at::kCPU};
};
/// What is to happen with a typed op: it comes by boxed, it runs unseen, or its end is told.
enum class Turn { Boxed, Unseen, Seen };
/// For ops of takeTyped(), before the other hook.
struct TypedHook {
    /// `box` gives the arguments as they would lie on a stack.
    Turn (*begin)(const Passing& op, const Arguments& arguments,
                  c10::function_ref<torch::jit::Stack()> box);
    void (*end)(const Tensors& results);
    void (*failed)();  // the op has thrown
};
/// As observe(), for a hook of its own; `beside` gets the ops of threads of observeBeside().
void observeWith(OpHook hook, OpHook beside = nullptr, const TypedHook* typed = nullptr);
/// On a thread that is not watched, but whose ops concern the hook: until the next leave().
void observeBeside();
/// On any thread; the one that is recorded is rid of us at the latest with its next op.
void leave();
/// Calls `begins` on this thread before the next op that follows a new node of autograd: a forward
/// with gradients begins, or a custom function runs without them. `gradients`: whether gradients
/// are enabled there; within a custom function they never are. Once: it may ask again. A thread
/// that is not watched is, until then, by this alone. Null: ends the wait.
void awaitForward(void (*begins)(int gradients));
/// What this thread does until it is told otherwise is no part of the step.
void pause(bool paused);
/// What this thread does until it has compiled is no part of the step: the compiler tries ops, if
/// its caches do not know the result. Where a hook takes the ops, `beside` gets these.
void compiling(bool begins);
/// This thread is in a dispatch mode of the framework's own that only looks at what ops return:
/// torch.compile's code runs in one for the first time.
void check(bool begins);
bool isChecked();
/// Ops of this thread come by for good, whether they concern us or not: torch.compile guards what
/// it has made by the thread's dispatch keys, and compiles it again where these are others.
void stay();
/// No op of this thread comes by until it is told otherwise, which costs nothing. Where the
/// framework goes back to an earlier state of the thread, as before each node of a backward pass,
/// ops come by again.
void standAside(bool aside);

// What lies behind, for typed_ops.cpp.

/// Just below autograd: meant for the framework's own fake tensors, and otherwise unused.
inline constexpr c10::DispatchKey kKey = c10::DispatchKey::Fake;
/// The way of every boxed op.
[[gnu::hot]] void onOp(const c10::OperatorHandle& handle, c10::DispatchKeySet keys,
                       torch::jit::Stack* stack);
/// What is to be asked about an op of this thread; null: nothing is, it comes by boxed.
[[gnu::hot]] const TypedHook* typedHook(c10::DispatchKeySet keys);

}  // namespace hw::profiler::native
