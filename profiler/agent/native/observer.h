// SPDX-License-Identifier: MIT
// Sees every op that the training thread dispatches, the threads of its backward included, and
// records what the dispatch mode of capture.py would: which storages it reads, makes and writes,
// how long it takes, what it allocates.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include "session.h"

namespace hw::profiler::native {

/// Once, before the others. False: the framework's dispatcher has no place left for us.
bool prepare();
/// On the thread that is to be recorded, outside of any op.
void observe();
/// An op that comes by: what it is, and the keys that are left to it.
struct Passing {
    const c10::OperatorHandle& handle;
    const c10::FunctionSchema& schema;
    c10::DispatchKeySet below;
};
/// Instead of recording: what is called runs the op.
using OpHook = void (*)(const Passing& op, torch::jit::Stack* stack);
/// As observe(), for a hook of its own; `beside` gets the ops of threads of observeBeside().
void observeWith(OpHook hook, OpHook beside = nullptr);
/// On a thread that is not watched, but whose ops concern the hook: until the next leave().
void observeBeside();
/// On any thread; the one that is recorded is rid of us at the latest with its next op.
void leave();
/// What this thread does until it is told otherwise is no part of the step.
void pause(bool paused);

}  // namespace hw::profiler::native
