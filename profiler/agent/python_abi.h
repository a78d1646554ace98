// SPDX-License-Identifier: MIT
// Python's headers are not on every machine: what is declared here is its stable ABI, looked up in
// the process.
#pragma once

#include <dlfcn.h>

using PyObject = struct _object;

namespace hw::profiler::agent {

/// PyMethodDef.
struct Method {
    const char* name;
    PyObject* (*function)(PyObject*, PyObject*);
    int flags;
    const char* text;
};
constexpr int kNoArguments = 4, kOneArgument = 8;  // METH_NOARGS, METH_O

template <class Entry>
bool find(Entry& entry, const char* name) {
    entry = reinterpret_cast<Entry>(dlsym(RTLD_DEFAULT, name));
    return entry != nullptr;
}

}  // namespace hw::profiler::agent
