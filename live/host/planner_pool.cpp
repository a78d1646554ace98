// SPDX-License-Identifier: MIT
#include "live/host/planner_pool.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "live/wire/live_program.h"

namespace hw::live {

using namespace hw::profiler;

namespace fs = std::filesystem;

namespace {

/// Files of a folder with that ending, those of lower kinds first.
std::vector<std::string> filesOf(const fs::path& folder, const std::string& ending) {
    std::vector<std::string> files;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error))
        if (const std::string path = entry.path().string(); path.ends_with(ending))
            files.push_back(path);
    std::sort(files.begin(), files.end(), [](const std::string& a, const std::string& b) {
        return std::pair(a.size(), a) < std::pair(b.size(), b);
    });
    return files;
}

}  // namespace

PlannerPool::~PlannerPool() {
    for (const auto& [folder, each] : running_) {
        kill(each.pid, SIGKILL);
        static_cast<void>(core::waitFor(each.pid));
    }
}

void PlannerPool::poll() {
    for (const auto& [ending, command] :
         {std::pair(std::string(wire::kLiveSoon), &planners_.soon),
          std::pair(std::string(wire::kLiveOften), &planners_.often),
          std::pair(std::string(wire::kLiveRegion), &planners_.region)}) {
        if (command->empty()) continue;
        for (const std::string& trace : filesOf(fs::path(prefix_).parent_path(), ending)) {
            const std::string named = trace.substr(0, trace.size() - ending.size());
            const std::size_t dot = named.rfind('.');
            if (!trace.starts_with(prefix_) || dot == std::string::npos) continue;
            const std::string program = named.substr(0, dot), folder = program + ending + ".plans";
            if (!running_.contains(folder))
                start(*command, program, named.substr(dot + 1), trace, folder);
        }
    }
    for (auto each = running_.begin(); each != running_.end();) {
        int status = 0;
        const bool goesOn = waitpid(each->second.pid, &status, WNOHANG) == 0;
        take(each->first, each->second.program);
        if (!goesOn && !each->second.awaited.empty()) answer(each->first, each->second);
        if (!goesOn) static_cast<void>(std::remove(each->second.taken.c_str()));
        each = goesOn ? std::next(each) : running_.erase(each);
    }
}

void PlannerPool::start(const std::vector<std::string>& command, const std::string& program,
                        const std::string& kind, const std::string& trace,
                        const std::string& folder) {
    const std::string taken = trace + ".taken";
    std::error_code error;
    fs::create_directory(folder, error);
    if (std::rename(trace.c_str(), taken.c_str()) != 0) return;
    std::vector<std::string> words = command;
    words.insert(words.end(), {taken, kind, folder});
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    const core::Spawned planner = core::spawn({words, {}, nothing, nothing, nothing});
    close(nothing);
    if (planner.error != 0) return progress_("no planner could be started; DTR goes on alone");
    const bool isRegion = trace.ends_with(wire::kLiveRegion);
    running_.emplace(folder, Running{planner.pid, program, taken,
                                     isRegion ? program + "." + kind + wire::kLiveAnswer : ""});
}

void PlannerPool::answer(const std::string& folder, const Running& planner) {
    const std::string name = fs::path(planner.awaited).extension().string();
    for (const std::string& kept : filesOf(folder, name))
        if (std::rename(kept.c_str(), planner.awaited.c_str()) == 0) return;
    std::ofstream file(planner.awaited + ".part");
    file << R"({"why": "the planner ended early"})";
    file.close();
    static_cast<void>(std::rename((planner.awaited + ".part").c_str(), planner.awaited.c_str()));
}

void PlannerPool::take(const std::string& folder, const std::string& program) {
    for (const std::string& plan : filesOf(folder, ".plan")) {
        const std::string next = program + wire::kLivePlan + std::to_string(given_[program]);
        if (std::rename(plan.c_str(), next.c_str()) != 0) continue;
        ++given_[program];
        tell(plan + ".json");
    }
}

/// Where there are several kinds of steps, a planner's first plan is worth a line, not each.
void PlannerPool::tell(const std::string& file) {
    std::ifstream in(file);
    const auto json = nlohmann::json::parse(in, nullptr, false);
    static_cast<void>(std::remove(file.c_str()));
    if (!json.is_object()) return;
    found_ = FoundPlan{json.value("planner", ""), core::Bytes(json.value("peak_bytes", 0LL)),
                       json.value("overhead", 1.0), json.value("seconds", 0.0)};
    const bool bySize = json.value("by_size", false);
    if (!told_.insert({found_->planner, bySize}).second) return;
    if (bySize) return progress_("from now on '" + found_->planner + "' plans by input size");
    char share[32];
    std::snprintf(share, sizeof(share), "%+.1f %%", 100 * (found_->overhead - 1));
    progress_("a plan of '" + found_->planner + "' takes over: peak " +
              core::humanBytes(found_->peak) + ", " + share);
}

}  // namespace hw::live
