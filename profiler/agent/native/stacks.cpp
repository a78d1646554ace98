// SPDX-License-Identifier: MIT
#include "stacks.h"

#include <algorithm>

// Python's ABI: its headers are not on every machine. PyCode_Addr2Line takes a code object. Weak:
// where there is no Python, nothing is read.
extern "C" {
void* PyGILState_GetThisThreadState() __attribute__((weak));
int PyGILState_Ensure() __attribute__((weak));
void PyGILState_Release(int state) __attribute__((weak));
void PyErr_Fetch(PyObject** type, PyObject** value, PyObject** traceback) __attribute__((weak));
void PyErr_Restore(PyObject* type, PyObject* value, PyObject* traceback) __attribute__((weak));
void PyErr_Clear() __attribute__((weak));
PyObject* PyObject_GetAttrString(PyObject* object, const char* name) __attribute__((weak));
const char* PyUnicode_AsUTF8AndSize(PyObject* text, std::ptrdiff_t* size) __attribute__((weak));
int PyCode_Addr2Line(PyObject* code, int byteOffset) __attribute__((weak));
void Py_IncRef(PyObject* object) __attribute__((weak));
void Py_DecRef(PyObject* object) __attribute__((weak));
}

namespace hw::profiler::native {
namespace {

/// Some references carry marks in their lowest bits (Python 3.14).
constexpr std::uintptr_t kMarks = 3;

std::uintptr_t at(std::uintptr_t address, std::int64_t offset) {
    return *reinterpret_cast<const std::uintptr_t*>(address + static_cast<std::uintptr_t>(offset));
}

template <typename Visit>
void eachFrame(const FrameLayout& layout, std::size_t most, const Visit& visit) {
    const auto thread = reinterpret_cast<std::uintptr_t>(PyGILState_GetThisThreadState());
    if (thread == 0) return;  // Python does not know the thread
    std::uintptr_t frame = at(thread, layout.innermost);
    if (frame != 0 && layout.indirect >= 0) frame = at(frame, layout.indirect);
    for (std::size_t depth = 0; frame != 0 && depth < most; ++depth) {
        visit(frame);
        frame = at(frame, layout.previous);
    }
}

class HoldPython {
public:
    HoldPython() : state_(PyGILState_Ensure()) { PyErr_Fetch(&type_, &value_, &traceback_); }
    ~HoldPython() {
        PyErr_Restore(type_, value_, traceback_);
        PyGILState_Release(state_);
    }
    HoldPython(const HoldPython&) = delete;
    HoldPython& operator=(const HoldPython&) = delete;

private:
    int state_;
    PyObject *type_ = nullptr, *value_ = nullptr, *traceback_ = nullptr;
};

std::string textOf(PyObject* code, const char* attribute) {
    std::string text = "?";
    PyObject* const value = PyObject_GetAttrString(code, attribute);
    std::ptrdiff_t size = 0;
    const char* const bytes = value == nullptr ? nullptr : PyUnicode_AsUTF8AndSize(value, &size);
    if (bytes != nullptr) text.assign(bytes, static_cast<std::size_t>(size));
    PyErr_Clear();
    if (value != nullptr) Py_DecRef(value);
    return text;
}

}  // namespace

void Stacks::start(wire::Stacks mode, const FrameLayout& layout, std::string frameworkFolder) {
    mode_ = mode;
    layout_ = layout;
    folder_ = std::move(frameworkFolder);
}

std::uint64_t Stacks::hash(const Sites& sites) {
    std::uint64_t hash = sites.size();
    for (const std::uintptr_t site : sites) hash = (hash ^ site) * 0x9e3779b97f4a7c15ull;
    return hash ^ (hash >> 32);
}

const SourceFrame* Stacks::ownOf(const std::vector<const SourceFrame*>& frames) {
    for (const SourceFrame* const frame : frames)
        if (!frame->hidden && !frame->framework) return frame;
    return nullptr;
}

void Stacks::read(Sites& sites, std::size_t most) const {
    sites.clear();
    eachFrame(layout_, most,
              [&](std::uintptr_t frame) { sites.push_back(at(frame, layout_.instruction)); });
}

std::int64_t Stacks::find(const Sites& sites) const {
    for (std::uint64_t hash = Stacks::hash(sites);; ++hash) {
        const auto found = known_.find(hash);
        if (found == known_.end()) return kNew;
        if (found->second.sites == sites) return found->second.id;
    }
}

const SourceFrame& Stacks::described(std::uintptr_t site, PyObject* code) {
    const auto [entry, isNew] = sources_.try_emplace(site);
    SourceFrame& source = entry->second;
    if (!isNew) return source;
    if (code == nullptr || at(reinterpret_cast<std::uintptr_t>(code), sizeof(std::ptrdiff_t)) !=
                               reinterpret_cast<std::uintptr_t>(layout_.codeType)) {
        source.hidden = true;  // Python's own step from C into code
        return source;
    }
    if (held_.insert(code).second) Py_IncRef(code);
    source.file = textOf(code, "co_filename");
    source.function = textOf(code, "co_qualname");
    const auto begin =
        reinterpret_cast<std::uintptr_t>(code) + static_cast<std::uintptr_t>(layout_.bytecode);
    source.line = std::max(0, PyCode_Addr2Line(code, static_cast<int>(site - begin)));
    source.framework = source.file.compare(0, folder_.size(), folder_) == 0;
    source.hidden = source.file.compare(0, 11, "<highwater ") == 0 ||
                    source.function == "<interpreter trampoline>";
    return source;
}

std::vector<const SourceFrame*> Stacks::describe(Sites& sites) {
    const HoldPython hold;
    std::vector<const SourceFrame*> frames;
    sites.clear();
    eachFrame(layout_, kDeepest, [&](std::uintptr_t frame) {
        sites.push_back(at(frame, layout_.instruction));
        frames.push_back(&described(
            sites.back(), reinterpret_cast<PyObject*>(at(frame, layout_.code) & ~kMarks)));
    });
    return frames;
}

std::int64_t Stacks::frameId(const SourceFrame& frame) {
    const auto [id, isNew] = frameIds_.try_emplace(&frame, kNone);
    if (!isNew) return id->second;
    const std::string name = frame.file + '\n' + std::to_string(frame.line) + '\n' + frame.function;
    const auto [known, isNewName] =
        frameNames_.try_emplace(name, static_cast<std::int64_t>(frameNames_.size()));
    id->second = known->second;
    if (isNewName)
        stream_.begin(FrameType::SourceFrame)
            .put(id->second)
            .put(frame.line)
            .put(static_cast<std::uint8_t>(frame.framework))
            .text(frame.file)
            .text(frame.function)
            .end();
    return id->second;
}

std::int64_t Stacks::add(const Sites& sites, const std::vector<const SourceFrame*>& frames) {
    std::int64_t stack = kNone;
    const auto enter = [&](const SourceFrame& frame) {
        const std::int64_t source = frameId(frame);
        const std::uint64_t key =
            static_cast<std::uint64_t>(stack + 1) << 32 | static_cast<std::uint64_t>(source);
        const auto [node, isNew] =
            nodes_.try_emplace(key, static_cast<std::int64_t>(nodes_.size()));
        if (isNew)
            stream_.begin(FrameType::StackNode).put(node->second).put(stack).put(source).end();
        stack = node->second;
    };
    const auto visible = [](const SourceFrame* frame) { return !frame->hidden; };
    if (mode_ == wire::Stacks::Line) {
        if (const SourceFrame* const line = ownOf(frames)) enter(*line);
    } else {
        for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
            if (visible(*frame)) enter(**frame);
    }
    std::uint64_t hash = Stacks::hash(sites);
    while (!known_.try_emplace(hash, Known{sites, stack}).second) ++hash;
    return stack;
}

void Stacks::release() {
    for (PyObject* const code : held_) Py_DecRef(code);
    held_.clear();
    sources_.clear();
}

}  // namespace hw::profiler::native
