// SPDX-License-Identifier: MIT
// Layers by their names in Kineto traces.
#include <algorithm>
#include <charconv>
#include <string_view>

#include "core/import/kineto.h"
#include "core/session/call_stacks.h"

namespace hw::core {

std::vector<std::pair<std::string, std::string>> modulesOf(const std::string& hierarchy) {
    std::vector<std::pair<std::string, std::string>> modules;
    std::string name, type;
    int inside = 0;
    bool method = false;
    const auto end = [&] {
        if (!name.empty() && name != "TOP" && name != "SELF") modules.emplace_back(name, type);
        name.clear(), type.clear(), method = false;
    };
    for (const char c : hierarchy) {
        if (c == '(')
            ++inside;
        else if (c == ')')
            inside = std::max(0, inside - 1);
        else if (inside > 0)
            type += c;
        else if (c == '.')
            end();
        else if (c == ':')
            method = true;
        else if (!method)
            name += c;
    }
    end();
    return modules;
}

std::vector<std::string> framesOf(const std::string& callStack) {
    std::vector<std::string> frames;
    std::string_view rest = callStack;
    while (!rest.empty()) {
        const std::size_t cut = std::min(rest.find(';'), rest.size());
        std::string_view frame = rest.substr(0, cut);
        rest.remove_prefix(std::min(cut + 1, rest.size()));
        const std::size_t bracket = std::min(frame.find('('), frame.size());
        if (const std::size_t slash = frame.rfind('/', bracket); slash != std::string_view::npos)
            frame.remove_prefix(slash + 1);
        // Every module is called through it: it says nothing.
        if (!frame.empty() && frame.find("_call_impl") == std::string_view::npos)
            frames.emplace_back(frame);
    }
    std::reverse(frames.begin(), frames.end());
    return frames;
}

std::vector<SourceFrameRow> sourceFramesOf(const std::string& callStack) {
    std::vector<SourceFrameRow> frames;
    std::string_view rest = callStack;
    while (!rest.empty()) {
        const std::size_t cut = std::min(rest.find(';'), rest.size());
        const std::string_view frame = rest.substr(0, cut);
        rest.remove_prefix(std::min(cut + 1, rest.size()));
        const std::size_t close = frame.rfind("): ");
        const std::size_t open = frame.rfind('(', close);
        if (close == std::string_view::npos || open == std::string_view::npos) continue;
        SourceFrameRow& row = frames.emplace_back();
        row.file = frame.substr(0, open);
        row.function = frame.substr(close + 3);
        std::from_chars(frame.data() + open + 1, frame.data() + close, row.line);
        row.line = std::max<std::int64_t>(0, row.line);
        row.framework = isFrameworkFile(row.file);
    }
    std::reverse(frames.begin(), frames.end());
    return frames;
}

}  // namespace hw::core
