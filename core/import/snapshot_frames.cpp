// SPDX-License-Identifier: MIT
#include "core/import/snapshot_frames.h"

#include <algorithm>
#include <array>

#include "core/base/utf8.h"
#include "core/session/call_stacks.h"

namespace hw::core {
namespace {

bool isCpp(std::string_view file) {
    return !file.ends_with(".py") && !file.starts_with("<");
}

bool holdsAny(std::string_view text, std::initializer_list<std::string_view> parts) {
    return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) {
        return text.find(part) != std::string_view::npos;
    });
}

// A C++ frame that tells nothing of the program: it records the stack, it is the allocator, or it
// is the interpreter (or the C library) that runs what other frames name.
bool saysNothing(std::string_view name) {
    if (holdsAny(name, {"unwind::unwind", "CapturedTraceback::gather", "gather_with_cpp",
                        "CachingAllocator::", "CachingHostAllocator", "CUDAPluggableAllocator::"}))
        return true;
    if (name.find("::") == std::string_view::npos &&
        (name.starts_with("Py") || name.starts_with("_Py")))
        return true;
    constexpr std::array<std::string_view, 7> kStarts{
        "_start",        "__libc_", "start_thread", "clone", "__clone", "execute_native_thread_",
        "cfunction_call"};
    return std::any_of(kStarts.begin(), kStarts.end(),
                       [&](std::string_view start) { return name.starts_with(start); });
}

// Operators that other operators call to get their memory.
bool onlyAllocates(std::string_view op) {
    return op.starts_with("aten::empty") || op.starts_with("aten::new_empty") ||
           op.starts_with("aten::resize_") || op.starts_with("aten::_resize");
}

SourceFrameRow cppFrame(std::string_view file, std::string_view name, std::int64_t line) {
    SourceFrameRow row;
    if (std::string op = operatorOf(name); !op.empty()) {
        row.function = std::move(op);
    } else {
        row.function = shortCppName(name);
        if (!file.empty() && file != "??") row.file = file, row.line = line;
    }
    row.framework = true;
    return row;
}

bool isOperator(const SourceFrameRow& frame) {
    return frame.file.empty() && frame.function.starts_with("aten::");
}

// Of the C++ frames below the innermost line of Python: from the operator that allocates inwards
// nothing is kept. Innermost first.
void cutBelowOperator(std::vector<SourceFrameRow>& frames) {
    std::size_t innermost = frames.size();
    for (std::size_t i = 0; i < frames.size() && (frames[i].file.empty() || isCpp(frames[i].file));
         ++i) {
        if (!isOperator(frames[i])) continue;
        innermost = i;
        if (!onlyAllocates(frames[i].function)) break;
    }
    if (innermost < frames.size())
        frames.erase(frames.begin(), frames.begin() + static_cast<std::ptrdiff_t>(innermost));
}

}  // namespace

std::string shortCppName(std::string_view name) {
    // Brackets of parameters and templates nest; "(anonymous namespace)" and "operator()" are no
    // parameters, and a conversion's or a template's result stands before its name.
    std::string text;
    int angle = 0;
    for (std::size_t i = 0; i < name.size(); ++i) {
        const std::string_view rest = name.substr(i);
        constexpr std::string_view kAnonymous = "(anonymous namespace)";
        if (angle == 0 && rest.starts_with(kAnonymous)) {
            text += kAnonymous;
            i += kAnonymous.size() - 1;
            continue;
        }
        if (angle == 0 && text.ends_with("operator") && rest.starts_with("()")) {
            text += "()";
            ++i;
            continue;
        }
        const char c = name[i];
        const bool isName = text.ends_with("operator") || text.ends_with("operator<") ||
                            text.ends_with("operator>") || text.ends_with("operator-");
        if (c == '<' && !isName) {
            ++angle;
        } else if (c == '>' && !isName && angle > 0) {
            --angle;
        } else if (angle == 0 && c == '(') {
            break;
        } else if (angle == 0) {
            text += c;
        }
    }
    const std::size_t space = text.find_last_of(' ');
    if (space != std::string::npos && text.find("operator") == std::string::npos &&
        text.find("(anonymous namespace)") == std::string::npos)
        text.erase(0, space + 1);
    return text.empty() ? std::string(name) : text;
}

std::string operatorOf(std::string_view name) {
    constexpr std::string_view kOps = "at::_ops::";
    const std::size_t at = name.find(kOps);
    if (at == std::string_view::npos) return {};
    const std::string_view rest = name.substr(at + kOps.size());
    const std::size_t end = rest.find("::");
    if (end == std::string_view::npos || end == 0) return {};
    const std::string_view way = rest.substr(end + 2);
    if (!way.starts_with("call") && !way.starts_with("redispatch")) return {};
    return "aten::" + std::string(rest.substr(0, end));
}

std::vector<SourceFrameRow> snapshotFrames(const PickleDocument& document, PickleRef list) {
    const auto textOf = [&](PickleRef frame, std::string_view key) {
        const auto value = document.find(frame, key);
        return value ? document.text(*value).value_or(std::string_view()) : std::string_view();
    };
    std::vector<SourceFrameRow> frames;
    for (const PickleRef frame : document.items(list)) {
        if (frames.size() >= kMostSnapshotFrames) break;
        const std::string_view file = textOf(frame, "filename"),
                               name = textOf(frame, "name").substr(0, kLongestName);
        if (name.empty()) continue;
        const auto number = document.find(frame, "line");
        const std::int64_t line =
            std::max<std::int64_t>(0, number ? document.integer(*number).value_or(0) : 0);
        if (!isCpp(file)) {
            SourceFrameRow& row = frames.emplace_back();
            row.file = shownName(file), row.function = shownName(name), row.line = line;
            row.framework = isFrameworkFile(row.file);
        } else if (!saysNothing(name)) {
            SourceFrameRow row = cppFrame(file.substr(0, kLongestName), name, line);
            // An operator is called, and dispatched again, once a layer of the dispatcher.
            const bool again = !frames.empty() && isOperator(row) && isOperator(frames.back()) &&
                               frames.back().function == row.function;
            if (!again) frames.push_back(std::move(row));
        }
    }
    cutBelowOperator(frames);
    std::reverse(frames.begin(), frames.end());
    return frames;
}

}  // namespace hw::core
