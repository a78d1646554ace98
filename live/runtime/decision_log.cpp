// SPDX-License-Identifier: MIT
#include "decision_log.h"

#include <cstdlib>

namespace hw::live::runtime {

std::unique_ptr<DecisionLog> DecisionLog::wanted(int heuristic) {
    const char* const path = std::getenv("HIGHWATER_DTR_LOG");
    if (path == nullptr || *path == '\0' || std::ifstream(path)) return nullptr;
    auto log = std::make_unique<DecisionLog>(path);
    log->line("dtr", heuristic);
    return log;
}

}  // namespace hw::live::runtime
