// SPDX-License-Identifier: MIT
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/python_stub.h>

#include <cstdint>
#include <vector>

namespace hw::profiler::native {

/// What is looked for among Python's objects.
struct Classes {
    PyObject* tensor;
    PyObject* lazy;  // tensors without a memory of their own until the first forward
    PyObject* optimizer;
    std::int64_t implOffset;  // bytes; where an object of a tensor has the address of its impl
};

/// `listObjects`: gc.get_objects. Called with Python's lock held, which it does not give away. The
/// optimizers are added to the list.
std::vector<at::Tensor> tensorsOfPython(PyObject* listObjects, const Classes& classes,
                                        PyObject* optimizers);

}  // namespace hw::profiler::native
