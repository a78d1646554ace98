// SPDX-License-Identifier: MIT
#include "profiler/attach/hand_over.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace hw::profiler {

namespace fs = std::filesystem;

namespace {
constexpr const char kTrace[] = ".trace";
}

HandOver::~HandOver() {
    for (const auto& [plan, pid] : running_) {
        kill(pid, SIGKILL);
        static_cast<void>(core::waitFor(pid));
    }
}

void HandOver::poll() {
    if (planner_.empty()) return;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(fs::path(prefix_).parent_path(), error))
        if (const std::string path = entry.path().string();
            path.starts_with(prefix_) && path.ends_with(kTrace))
            start(path);
    for (auto each = running_.begin(); each != running_.end();) {
        int status = 0;
        if (waitpid(each->second, &status, WNOHANG) == 0) {
            ++each;
            continue;
        }
        if (core::succeeded(status)) finished(each->first);
        each = running_.erase(each);
    }
}

void HandOver::start(const std::string& trace) {
    const std::string base = trace.substr(0, trace.size() - (sizeof(kTrace) - 1));
    const std::string plan = base + ".plan", taken = base + ".step";
    if (running_.contains(plan)) return;  // of the program as it was; then comes this one
    if (std::rename(trace.c_str(), taken.c_str()) != 0) return;
    std::vector<std::string> command = planner_;
    command.insert(command.end(), {taken, plan});
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    const core::Spawned program = core::spawn({command, {}, nothing, nothing, nothing});
    close(nothing);
    if (program.error != 0) return progress_("no planner could be started; DTR goes on alone");
    running_.emplace(plan, program.pid);
}

void HandOver::finished(const std::string& plan) {
    std::ifstream file(plan + ".json");
    const auto json = nlohmann::json::parse(file, nullptr, false);
    if (!json.is_object()) return;
    found_ = FoundPlan{json.value("planner", ""), core::Bytes(json.value("peak_bytes", 0LL)),
                       json.value("overhead", 1.0), json.value("seconds", 0.0)};
    char share[32];
    std::snprintf(share, sizeof(share), "%+.1f %%", 100 * (found_->overhead - 1));
    progress_("a plan of '" + found_->planner + "' takes over: peak " +
              core::humanBytes(found_->peak) + ", " + share);
}

}  // namespace hw::profiler
