// SPDX-License-Identifier: MIT
#include "live/host/kept_ops.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>

#include "core/base/digest.h"
#include "core/base/file.h"

namespace hw::live {

namespace wire = profiler::wire;
namespace {

namespace fs = std::filesystem;

constexpr const char* kSources = "sources";

fs::path fileOf(const std::vector<std::string>& command, const std::string& folder) {
    fs::path cache;
    if (const char* set = std::getenv("XDG_CACHE_HOME"); set != nullptr && *set != '\0')
        cache = set;
    else if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
        cache = fs::path(home) / ".cache";
    else
        return {};
    core::Digest digest;
    digest.add(folder);
    for (const std::string& word : command) digest.add(word);
    return cache / "highwater/kept" / digest.hex().substr(0, 24);
}

std::string contentOf(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

std::string keptOps(const std::vector<std::string>& command, const std::string& folder) {
    const fs::path path = fileOf(command, folder);
    return path.empty() ? "" : contentOf(path);
}

/// An op that is known under another number already is kept wherever it comes in a step.
void rememberMismatches(const std::vector<std::string>& command, const std::string& folder,
                        const std::vector<wire::LiveMismatchRecord>& mismatches) {
    const fs::path path = fileOf(command, folder);
    if (path.empty() || mismatches.empty()) return;
    bool sources = false;
    std::map<std::string, std::int64_t> numbers;
    const auto add = [&](const std::string& name, std::int64_t number) {
        const auto [at, fresh] = numbers.try_emplace(name, number);
        if (!fresh && at->second != number) at->second = -1;
    };
    std::istringstream known(contentOf(path));
    for (std::string line; std::getline(known, line);) {
        std::istringstream fields(line);
        std::int64_t number = 0;
        std::string name;
        if (line == kSources)
            sources = true;
        else if (fields >> number >> name)
            add(name, number);
    }
    for (const wire::LiveMismatchRecord& each : mismatches) {
        add(each.name, each.op);
        sources = sources || each.kind == wire::MismatchKind::UnseenWriter;
    }
    std::string text = sources ? std::string(kSources) + "\n" : "";
    for (const auto& [name, number] : numbers) text += std::to_string(number) + " " + name + "\n";
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    static_cast<void>(core::writeFileAtomically(path.string(), text));
}

}  // namespace hw::live
