// SPDX-License-Identifier: MIT
#pragma once

#include "profiler/agent/python_abi.h"

namespace hw::profiler::agent {

/// Whether this Python has what is needed. With its lock held, as below.
bool canStandFor();
/// A callable that does what `original` does and is in all else as it is. Before each call
/// `before(*arguments)` is called, unless it is None, and may raise instead; after it
/// `after(what before has given, whether the original has returned)`, unless it is None.
PyObject* standFor(PyObject* original, PyObject* before, PyObject* after);
/// Calls of one that standFor() has made go straight to the original, or no longer.
void silence(PyObject* standing, bool silent);

}  // namespace hw::profiler::agent
