// SPDX-License-Identifier: MIT
#include "profiler/agent/interpreter.h"

#include <pthread.h>
#include <string.h>

#include <atomic>
#include <cstddef>

#include "profiler/agent/python_abi.h"

namespace hw::profiler::agent {
namespace {

/// struct _inittab.
struct BuiltIn {
    const char* name;
    PyObject* (*init)();
};

struct Interpreter {
    int (*isInitialized)();
    int (*ensure)();
    void (*release)(int);
    int (*run)(const char*);
    void* (*saveThread)();
    void (*restoreThread)(void*);
    PyObject* (*import)(const char*);
    PyObject* (*newFunction)(Method*, PyObject*, PyObject*);
    PyObject* (*callMethod)(PyObject*, const char*, const char*, ...);
    void (*clearError)();
    void (*hold)(PyObject*);
    void (*drop)(PyObject*);
    PyObject* none;
    BuiltIn** builtIns;
};
Interpreter gInterpreter;

pthread_mutex_t gStay = PTHREAD_MUTEX_INITIALIZER;
std::atomic<bool> gEnds{false};
bool gWatched = false;  // with the interpreter's lock
PyObject* (*gInit)() = nullptr;

PyObject* atExit(PyObject*, PyObject*) {
    void* const thread = gInterpreter.saveThread();
    leaveInterpreter();
    gInterpreter.restoreThread(thread);
    gInterpreter.hold(gInterpreter.none);
    return gInterpreter.none;
}

PyObject* initialize() {
    watchEnd();
    return gInit();
}

}  // namespace

void watchEnd() {
    if (gWatched) return;
    gWatched = true;
    static Method method = {"highwater_leaves", atExit, kNoArguments, nullptr};
    PyObject* const module = gInterpreter.import("atexit");
    PyObject* const function =
        module == nullptr ? nullptr : gInterpreter.newFunction(&method, nullptr, nullptr);
    PyObject* const done =
        function == nullptr ? nullptr : gInterpreter.callMethod(module, "register", "O", function);
    if (done == nullptr) gInterpreter.clearError();
    for (PyObject* const each : {module, function, done})
        if (each != nullptr) gInterpreter.drop(each);
}

bool findPython() {
    Interpreter& api = gInterpreter;
    return dlsym(RTLD_DEFAULT, "Py_AddPendingCall") != nullptr &&
           find(api.isInitialized, "Py_IsInitialized") && find(api.ensure, "PyGILState_Ensure") &&
           find(api.release, "PyGILState_Release") && find(api.run, "PyRun_SimpleString") &&
           find(api.saveThread, "PyEval_SaveThread") &&
           find(api.restoreThread, "PyEval_RestoreThread") &&
           find(api.import, "PyImport_ImportModule") &&
           find(api.newFunction, "PyCFunction_NewEx") &&
           find(api.callMethod, "PyObject_CallMethod") && find(api.clearError, "PyErr_Clear") &&
           find(api.hold, "Py_IncRef") && find(api.drop, "Py_DecRef") &&
           find(api.none, "_Py_NoneStruct") && find(api.builtIns, "PyImport_Inittab");
}

bool pythonInitialized() {
    return gInterpreter.isInitialized() != 0;
}

void watchBegin() {
    constexpr std::size_t kMost = 512;
    static BuiltIn table[kMost];
    std::size_t count = 0;
    for (const BuiltIn* each = *gInterpreter.builtIns; each->name != nullptr; ++each) {
        if (count + 1 == kMost) return;
        BuiltIn& copy = table[count++] = *each;
        if (strcmp(copy.name, "_io") != 0 || gInit != nullptr) continue;
        gInit = copy.init;
        copy.init = &initialize;
    }
    if (gInit != nullptr) *gInterpreter.builtIns = table;
}

bool stay(const char* script) {
    pthread_mutex_lock(&gStay);
    bool done = false;
    if (!gEnds.load()) {
        const int state = gInterpreter.ensure();
        done = gInterpreter.run(script) == 0;
        gInterpreter.release(state);
    }
    pthread_mutex_unlock(&gStay);
    return done;
}

void leaveInterpreter() {
    gEnds.store(true);
    pthread_mutex_lock(&gStay);
    pthread_mutex_unlock(&gStay);
}

bool interpreterEnds() {
    return gEnds.load();
}

void forgetStays() {
    pthread_mutex_init(&gStay, nullptr);
}

}  // namespace hw::profiler::agent
