// SPDX-License-Identifier: MIT
// Callables that stand for others without a frame of Python's: a traceback, a warning's place and
// whatever else looks at the stack is as without them. Python's headers are not on every machine:
// what is declared here is its stable ABI (but for PyMethod_New), looked up in the process.
#include "profiler/agent/callables.h"

#include <dlfcn.h>
#include <string.h>

#include <cstddef>
#include <cstdint>

struct _object {
    std::ptrdiff_t references;
    PyObject* type;
};

namespace hw::profiler::agent {
namespace {

struct Callable {
    PyObject head;
    PyObject* original;
    PyObject* before;  // or nullptr
    PyObject* after;   // or nullptr
    PyObject* weakReferences;
};

struct Slot {
    int id;
    void* value;
};
struct Spec {
    const char* name;
    int bytes;
    int itemBytes;
    unsigned flags;
    Slot* slots;
};
struct Member {
    const char* name;
    int type;
    std::ptrdiff_t offset;
    int flags;
    const char* text;
};
struct Method {
    const char* name;
    PyObject* (*function)(PyObject*, PyObject*);
    int flags;
    const char* text;
};

// Include/typeslots.h, structmember.h, methodobject.h and object.h of Python.
constexpr int kCall = 50, kDealloc = 52, kBind = 54, kGetAttribute = 58, kHash = 59, kMethods = 64,
              kRepr = 66, kCompare = 67, kSetAttribute = 69, kString = 70, kMembers = 72;
constexpr int kSsize = 19, kReadOnly = 1, kOneArgument = 8;
constexpr unsigned kDefaultFlags = 1U << 18;

struct Python {
    PyObject* (*fromSpec)(Spec*);
    PyObject* (*allocate)(PyObject*, std::ptrdiff_t);
    void (*free)(void*);
    void (*hold)(PyObject*);
    void (*drop)(PyObject*);
    PyObject* (*call)(PyObject*, PyObject*, PyObject*);
    PyObject* (*callWith)(PyObject*, ...);
    PyObject* (*bind)(PyObject*, PyObject*);
    PyObject* (*get)(PyObject*, PyObject*);
    PyObject* (*getOwn)(PyObject*, PyObject*);
    PyObject* (*getNamed)(PyObject*, const char*);
    int (*set)(PyObject*, PyObject*, PyObject*);
    std::ptrdiff_t (*hash)(PyObject*);
    PyObject* (*compare)(PyObject*, PyObject*, int);
    PyObject* (*repr)(PyObject*);
    PyObject* (*string)(PyObject*);
    const char* (*text)(PyObject*, std::ptrdiff_t*);
    PyObject* (*truth)(long);
    void (*fetch)(PyObject**, PyObject**, PyObject**);
    void (*restore)(PyObject*, PyObject*, PyObject*);
    void (*clearWeak)(PyObject*);
    PyObject* none;
    PyObject* functions;  // the type of functions in Python
    PyObject* callables;  // the type of these here
};
Python gPython;

template <class Entry>
bool find(Entry& entry, const char* name) {
    entry = reinterpret_cast<Entry>(dlsym(RTLD_DEFAULT, name));
    return entry != nullptr;
}

Callable& callable(PyObject* object) {
    return *reinterpret_cast<Callable*>(object);
}

PyObject* original(PyObject* object) {
    return object->type == gPython.callables ? callable(object).original : object;
}

/// What `after` raises takes the place of what the original has raised.
PyObject* tellAfter(PyObject* after, PyObject* token, PyObject* result) {
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    if (result == nullptr) gPython.fetch(&type, &value, &trace);
    PyObject* const done = gPython.truth(result != nullptr ? 1 : 0);
    PyObject* const told = gPython.callWith(after, token, done, nullptr);
    gPython.drop(done);
    if (told != nullptr) {
        gPython.drop(told);
        if (result == nullptr) gPython.restore(type, value, trace);
        return result;
    }
    for (PyObject* const each : {type, value, trace, result})
        if (each != nullptr) gPython.drop(each);
    return nullptr;
}

PyObject* call(PyObject* self, PyObject* arguments, PyObject* named) {
    // It may be replaced, and go, while it runs.
    Callable& own = callable(self);
    PyObject* const held[] = {own.original, own.before, own.after};
    for (PyObject* const each : held)
        if (each != nullptr) gPython.hold(each);
    PyObject* token = gPython.none;
    gPython.hold(token);
    if (held[1] != nullptr) {
        gPython.drop(token);
        token = gPython.call(held[1], arguments, named);
    }
    PyObject* result = nullptr;
    if (token != nullptr) {
        result = gPython.call(held[0], arguments, named);
        if (held[2] != nullptr) result = tellAfter(held[2], token, result);
        gPython.drop(token);
    }
    for (PyObject* const each : held)
        if (each != nullptr) gPython.drop(each);
    return result;
}

void dealloc(PyObject* self) {
    Callable& own = callable(self);
    PyObject* const type = self->type;
    if (own.weakReferences != nullptr) gPython.clearWeak(self);
    for (PyObject* const each : {own.original, own.before, own.after})
        if (each != nullptr) gPython.drop(each);
    gPython.free(self);
    gPython.drop(type);
}

PyObject* bind(PyObject* self, PyObject* object, PyObject*) {
    if (object != nullptr && object != gPython.none) return gPython.bind(self, object);
    gPython.hold(self);
    return self;
}

PyObject* getAttribute(PyObject* self, PyObject* name) {
    const char* const text = gPython.text(name, nullptr);
    if (text == nullptr) return nullptr;
    for (const char* const own : {"__call__", "__get__", "__reduce_ex__"})
        if (strcmp(text, own) == 0) return gPython.getOwn(self, name);
    return gPython.get(callable(self).original, name);
}

int setAttribute(PyObject* self, PyObject* name, PyObject* value) {
    return gPython.set(callable(self).original, name, value);
}

std::ptrdiff_t hash(PyObject* self) {
    return gPython.hash(callable(self).original);
}

PyObject* compare(PyObject* one, PyObject* other, int how) {
    return gPython.compare(original(one), original(other), how);
}

PyObject* repr(PyObject* self) {
    return gPython.repr(callable(self).original);
}

PyObject* string(PyObject* self) {
    return gPython.string(callable(self).original);
}

/// Pickled, it is what the original is: a function by its name, under which this one is found.
PyObject* reduce(PyObject* self, PyObject* protocol) {
    PyObject* const stoodFor = callable(self).original;
    if (stoodFor->type == gPython.functions) return gPython.getNamed(stoodFor, "__qualname__");
    PyObject* const method = gPython.getNamed(stoodFor, "__reduce_ex__");
    if (method == nullptr) return nullptr;
    PyObject* const result = gPython.callWith(method, protocol, nullptr);
    gPython.drop(method);
    return result;
}

}  // namespace

bool canStandFor() {
    if (gPython.callables != nullptr) return true;
    Python& api = gPython;
    const bool found =
        find(api.fromSpec, "PyType_FromSpec") && find(api.allocate, "PyType_GenericAlloc") &&
        find(api.free, "PyObject_Free") && find(api.hold, "Py_IncRef") &&
        find(api.drop, "Py_DecRef") && find(api.call, "PyObject_Call") &&
        find(api.callWith, "PyObject_CallFunctionObjArgs") && find(api.bind, "PyMethod_New") &&
        find(api.get, "PyObject_GetAttr") && find(api.getOwn, "PyObject_GenericGetAttr") &&
        find(api.getNamed, "PyObject_GetAttrString") && find(api.set, "PyObject_SetAttr") &&
        find(api.hash, "PyObject_Hash") && find(api.compare, "PyObject_RichCompare") &&
        find(api.repr, "PyObject_Repr") && find(api.string, "PyObject_Str") &&
        find(api.text, "PyUnicode_AsUTF8AndSize") && find(api.truth, "PyBool_FromLong") &&
        find(api.fetch, "PyErr_Fetch") && find(api.restore, "PyErr_Restore") &&
        find(api.clearWeak, "PyObject_ClearWeakRefs") && find(api.none, "_Py_NoneStruct") &&
        find(api.functions, "PyFunction_Type");
    if (!found) return false;
    static Method methods[] = {{"__reduce_ex__", reduce, kOneArgument, nullptr}, {}};
    static Member members[] = {
        {"__weaklistoffset__", kSsize, offsetof(Callable, weakReferences), kReadOnly, nullptr}, {}};
    const auto slot = [](auto* value) { return reinterpret_cast<void*>(value); };
    static Slot slots[] = {{kCall, slot(call)},
                           {kDealloc, slot(dealloc)},
                           {kBind, slot(bind)},
                           {kGetAttribute, slot(getAttribute)},
                           {kSetAttribute, slot(setAttribute)},
                           {kHash, slot(hash)},
                           {kCompare, slot(compare)},
                           {kRepr, slot(repr)},
                           {kString, slot(string)},
                           {kMethods, methods},
                           {kMembers, members},
                           {0, nullptr}};
    static Spec spec = {"_highwater.Callable", sizeof(Callable), 0, kDefaultFlags, slots};
    api.callables = api.fromSpec(&spec);
    return api.callables != nullptr;
}

PyObject* standFor(PyObject* stoodFor, PyObject* before, PyObject* after) {
    PyObject* const made = gPython.allocate(gPython.callables, 0);
    if (made == nullptr) return nullptr;
    const auto held = [](PyObject* object) -> PyObject* {
        if (object == gPython.none) return nullptr;
        gPython.hold(object);
        return object;
    };
    Callable& own = callable(made);
    own.original = held(stoodFor);
    own.before = held(before);
    own.after = held(after);
    return made;
}

}  // namespace hw::profiler::agent
