// SPDX-License-Identifier: MIT
#include "core/import/simrd.h"
#include "core/plan/implementations.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using namespace hw::core;

// Two ops, so that a menu has something to speak of.
constexpr const char* kLog = R"({"INSTRUCTION":"CONSTANT","NAME":"x"}
{"INSTRUCTION":"MEMORY","NAME":"x","MEMORY":"100"}
{"INSTRUCTION":"CALL","NAME":"conv","ARGS":["x"],"RESULT":["y"],"TIME":"7"}
{"INSTRUCTION":"MEMORY","NAME":"y","MEMORY":"100"}
{"INSTRUCTION":"ALIAS","NAME":"y","ALIAS":"-1"}
{"INSTRUCTION":"CALL","NAME":"relu","ARGS":["y"],"RESULT":["z"],"TIME":"1"}
{"INSTRUCTION":"MEMORY","NAME":"z","MEMORY":"100"}
{"INSTRUCTION":"ALIAS","NAME":"z","ALIAS":"-1"}
)";

TrainingGraph smallGraph() {
    const std::string log = kLog;
    auto source = TextSource::open(
        hw::fuzz::fileOf(reinterpret_cast<const std::uint8_t*>(log.data()), log.size()));
    SessionWriter session = SessionWriter::inMemory();
    if (!source || !importSimrd(*source, session)) std::abort();
    return *loadGraph(session, 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const TrainingGraph graph = smallGraph();
    const auto menu = parseMenu(std::string(reinterpret_cast<const char*>(data), size), graph);
    if (!menu) {
        hw::fuzz::requireClear(menu.error());
        return 0;
    }
    for (const Implementation& one : menu->implementations)
        static_cast<void>(applyImplementations(graph, *menu, {{one.op, one.name}}));
    return 0;
}
