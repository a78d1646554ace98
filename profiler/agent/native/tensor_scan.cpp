// SPDX-License-Identifier: MIT
// Every tensor that Python has, taken hold of in one go: where other threads train, a tensor may go
// at any time, and one that Python still has a reference to goes wrong.
#include "tensor_scan.h"

#include <unordered_map>

// Python's stable ABI: its headers are not on every machine.
extern "C" {
PyObject* PyObject_CallObject(PyObject* callable, PyObject* arguments);
std::ptrdiff_t PyList_Size(PyObject* list);
PyObject* PyList_GetItem(PyObject* list, std::ptrdiff_t index);  // borrowed
int PyList_Append(PyObject* list, PyObject* item);
int PyType_IsSubtype(PyObject* type, PyObject* base);
void Py_DecRef(PyObject* object);
void PyErr_Clear();
}

namespace hw::profiler::native {
namespace {

/// What every object begins with.
struct Head {
    std::ptrdiff_t references;
    PyObject* type;
};

enum class Kind { Other, Tensor, Optimizer };

Kind kindOf(PyObject* type, const Classes& classes) {
    if (PyType_IsSubtype(type, classes.tensor) != 0)
        return PyType_IsSubtype(type, classes.lazy) != 0 ? Kind::Other : Kind::Tensor;
    return PyType_IsSubtype(type, classes.optimizer) != 0 ? Kind::Optimizer : Kind::Other;
}

/// Undefined: it is going already, on a thread that waits for Python to let go of it.
at::Tensor held(PyObject* object, std::int64_t offset) {
    auto* impl =
        *reinterpret_cast<c10::TensorImpl**>(reinterpret_cast<std::uintptr_t>(object) + offset);
    if (impl == nullptr || impl == c10::UndefinedTensorImpl::singleton()) return {};
    c10::raw::weak_intrusive_ptr::incref(impl);
    return at::Tensor(c10::weak_intrusive_ptr<c10::TensorImpl>::reclaim(impl).lock());
}

}  // namespace

std::vector<at::Tensor> tensorsOfPython(PyObject* listObjects, const Classes& classes,
                                        PyObject* optimizers) {
    std::vector<at::Tensor> tensors;
    PyObject* const objects = PyObject_CallObject(listObjects, nullptr);
    if (objects == nullptr) {
        PyErr_Clear();
        return tensors;
    }
    // Nothing in here gives another thread a turn, as long as the list lives.
    std::unordered_map<PyObject*, Kind> kinds;
    const std::ptrdiff_t count = PyList_Size(objects);
    for (std::ptrdiff_t i = 0; i < count; ++i) {
        PyObject* const object = PyList_GetItem(objects, i);
        PyObject* const type = reinterpret_cast<const Head*>(object)->type;
        const auto [kind, isNew] = kinds.try_emplace(type, Kind::Other);
        if (isNew) kind->second = kindOf(type, classes);
        if (kind->second == Kind::Tensor) {
            at::Tensor tensor = held(object, classes.implOffset);
            if (tensor.defined()) tensors.push_back(std::move(tensor));
        } else if (kind->second == Kind::Optimizer) {
            PyList_Append(optimizers, object);
        }
    }
    Py_DecRef(objects);
    return tensors;
}

}  // namespace hw::profiler::native
