// SPDX-License-Identifier: MIT
// Callables that stand for others without a frame of Python's: a traceback, a warning's place and
// whatever else looks at the stack is as without them. Of Python's stable ABI, but for
// PyMethod_New.
#include "profiler/agent/callables.h"

#include <string.h>

#include <cstddef>
#include <cstdint>

#include "profiler/agent/python_abi.h"

struct _object {
    std::ptrdiff_t references;
    PyObject* type;
};

namespace hw::profiler::agent {
namespace {

using Vectorcall = PyObject* (*)(PyObject*, PyObject* const*, std::size_t, PyObject*);

struct Callable {
    PyObject head;
    Vectorcall vectorcall;
    PyObject* original;
    PyObject* before;  // or nullptr
    PyObject* after;   // or nullptr
    PyObject* weakReferences;
    std::size_t silent;  // not 0: only the original is called
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
// Include/typeslots.h, structmember.h, methodobject.h and object.h of Python.
constexpr int kCall = 50, kDealloc = 52, kBind = 54, kGetAttribute = 58, kHash = 59, kMethods = 64,
              kRepr = 66, kCompare = 67, kSetAttribute = 69, kString = 70, kMembers = 72;
constexpr int kSsize = 19, kReadOnly = 1;
constexpr unsigned kDefaultFlags = 1U << 18, kVectorcallFlag = 1U << 11;
constexpr std::size_t kSpareArgument = std::size_t{1} << (8 * sizeof(std::size_t) - 1);

struct Python {
    PyObject* (*fromSpec)(Spec*);
    PyObject* (*allocate)(PyObject*, std::ptrdiff_t);
    void (*free)(void*);
    void (*hold)(PyObject*);
    void (*drop)(PyObject*);
    PyObject* (*call)(PyObject*, PyObject*, PyObject*);
    PyObject* (*callWith)(PyObject*, ...);
    Vectorcall vectorcall;  // may be missing
    PyObject* (*callVector)(PyObject*, PyObject*, PyObject*);
    int (*recursionLimit)();
    void (*setRecursionLimit)(int);
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
    int (*checkSignals)();
    void (*clearWeak)(PyObject*);
    PyObject* none;
    PyObject* functions;  // the type of functions in Python
    PyObject* callables;  // the type of these here
};
Python gPython;

Callable& callable(PyObject* object) {
    return *reinterpret_cast<Callable*>(object);
}

PyObject* original(PyObject* object) {
    return object->type == gPython.callables ? callable(object).original : object;
}

/// Where the program is as deep in calls as it may be, what is told of it has room all the same.
class Headroom {
public:
    Headroom() : limit_(gPython.recursionLimit()) { gPython.setRecursionLimit(limit_ + kMore); }
    ~Headroom() {
        if (gPython.recursionLimit() == limit_ + kMore) gPython.setRecursionLimit(limit_);
    }
    Headroom(const Headroom&) = delete;
    Headroom& operator=(const Headroom&) = delete;

private:
    static constexpr int kMore = 100;
    int limit_;
};

/// What `after` raises takes the place of what the original has raised.
PyObject* tellAfter(PyObject* after, PyObject* token, PyObject* result) {
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    if (result == nullptr) gPython.fetch(&type, &value, &trace);
    PyObject* const done = gPython.truth(result != nullptr ? 1 : 0);
    PyObject* told = nullptr;
    {
        const Headroom headroom;
        told = gPython.callWith(after, token, done, nullptr);
    }
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

/// A signal that came meanwhile has its handler called now, as behind the original, not within
/// `after`: what it raises is raised instead of the result.
PyObject* handled(PyObject* result) {
    if (result == nullptr || gPython.checkSignals() == 0) return result;
    gPython.drop(result);
    return nullptr;
}

/// `callThat` calls with the arguments of this call.
template <class CallThat>
PyObject* around(PyObject* self, const CallThat& callThat) {
    // It may be replaced, and go, while it runs.
    Callable& own = callable(self);
    const bool tells = own.silent == 0;
    PyObject* const held[] = {own.original, tells ? own.before : nullptr,
                              tells ? own.after : nullptr};
    for (PyObject* const each : held)
        if (each != nullptr) gPython.hold(each);
    PyObject* token = gPython.none;
    if (held[1] != nullptr) {
        const Headroom headroom;
        token = callThat(held[1]);
    } else {
        gPython.hold(token);
    }
    PyObject* result = nullptr;
    if (token != nullptr) {
        result = callThat(held[0]);
        if (held[2] != nullptr) result = tellAfter(held[2], token, handled(result));
        gPython.drop(token);
    }
    for (PyObject* const each : held)
        if (each != nullptr) gPython.drop(each);
    return result;
}

PyObject* call(PyObject* self, PyObject* arguments, PyObject* named) {
    return around(self, [&](PyObject* that) { return gPython.call(that, arguments, named); });
}

/// As Python calls what is not made for it alone, which counts as no call more.
PyObject* vectorcall(PyObject* self, PyObject* const* arguments, std::size_t count,
                     PyObject* names) {
    return around(self, [&](PyObject* that) {
        return gPython.vectorcall(that, arguments, count & ~kSpareArgument, names);
    });
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
        find(api.recursionLimit, "Py_GetRecursionLimit") &&
        find(api.setRecursionLimit, "Py_SetRecursionLimit") &&
        find(api.checkSignals, "PyErr_CheckSignals") &&
        find(api.clearWeak, "PyObject_ClearWeakRefs") && find(api.none, "_Py_NoneStruct") &&
        find(api.functions, "PyFunction_Type");
    if (!found) return false;
    static Method methods[] = {{"__reduce_ex__", reduce, kOneArgument, nullptr}, {}};
    const bool quick =
        find(api.vectorcall, "PyObject_Vectorcall") && find(api.callVector, "PyVectorcall_Call");
    static Member members[] = {
        {"__weaklistoffset__", kSsize, offsetof(Callable, weakReferences), kReadOnly, nullptr},
        {"__vectorcalloffset__", kSsize, offsetof(Callable, vectorcall), kReadOnly, nullptr},
        {}};
    if (!quick) members[1] = {};
    const auto slot = [](auto* value) { return reinterpret_cast<void*>(value); };
    static Slot slots[] = {{kCall, quick ? slot(api.callVector) : slot(call)},
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
    static Spec spec = {"_highwater.Callable", sizeof(Callable), 0,
                        kDefaultFlags | (quick ? kVectorcallFlag : 0), slots};
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
    own.vectorcall = vectorcall;
    own.original = held(stoodFor);
    own.before = held(before);
    own.after = held(after);
    return made;
}

void silence(PyObject* standing, bool silent) {
    callable(standing).silent = silent ? 1 : 0;
}

}  // namespace hw::profiler::agent
