// SPDX-License-Identifier: MIT
#include "core/import/load_step.h"

#include <utility>

#include "core/import/import.h"
#include "core/session/session.h"

namespace hw::core {

Result<StepGraph> graphOfStep(const Session& session, const std::string& path,
                              std::optional<std::int64_t> step, std::optional<CostSet> costs) {
    if (!step) {
        auto last = session.lastStep();
        if (!last) return last.error();
        step = *last;
    }
    auto graph = loadGraph(session, *step, costs);
    if (!graph) return graph.error();
    const Evaluation baseline = evaluate(*graph, baselineSchedule(*graph));
    if (!baseline.valid)
        return badInput("'" + path + "': the captured order does not replay: " + baseline.why,
                        "the recording contradicts itself; record again");
    return StepGraph{std::move(*graph), baseline};
}

Result<LoadedStep> loadStep(const std::string& path, std::optional<std::int64_t> step,
                            std::optional<CostSet> costs) {
    auto session = openAny(path);
    if (!session) return session.error();
    auto loaded = graphOfStep(*session, path, step, costs);
    if (!loaded) return loaded.error();
    return LoadedStep{std::move(*loaded), std::move(*session)};
}

}  // namespace hw::core
