// SPDX-License-Identifier: MIT
#include "core/session/step_environment.h"

#include <nlohmann/json.hpp>

namespace hw::core {

StepEnvironment stepEnvironment(const StepRow& step) {
    StepEnvironment environment;
    const auto json = nlohmann::json::parse(step.environment, nullptr, false);
    if (!json.is_object()) return environment;
    const auto stable = json.find("stable_sources");
    environment.stableSources = stable != json.end() && stable->is_boolean() && stable->get<bool>();
    const auto written = json.find("written_unseen");
    if (written == json.end() || !written->is_array()) return environment;
    for (const auto& id : *written)
        if (id.is_number_integer()) environment.writtenUnseen.push_back(id.get<std::int64_t>());
    return environment;
}

}  // namespace hw::core
