// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/examples.h"

#include <map>

namespace hw::app {

const std::vector<std::string>& examplesOf(const std::string& command) {
    static const std::map<std::string, std::vector<std::string>> examples{
        {"record",
         {"highwater record -o run.hws -- python3 train.py",
          "highwater record --steps 1 --warmup 10 -o run.hws -- torchrun --nproc_per_node 2 "
          "train.py",
          "highwater record --on-oom -o run.hws -- python3 train.py"}},
        {"attach", {"highwater attach 4711 --steps 2 -o run.hws"}},
        {"detach", {"highwater detach 4711"}},
        {"ps", {"highwater ps"}},
        {"join", {"highwater join a.hws b.hws -o run.hws"}},
        {"import", {"highwater import snapshot.pickle -o snapshot.hws"}},
        {"info", {"highwater info run.hws", "highwater info run.hws --by layer"}},
        {"plan",
         {"highwater plan run.hws --ratio 0.7 -o run.plan.json",
          "highwater plan run.hws --budget 4GiB --planner dtr:eqclass",
          "highwater plan run.hws --ranks all --ratio 0.7 -o plans/"}},
        {"sweep",
         {"highwater sweep run.hws",
          "highwater sweep run.hws --planners highwater,checkmate --ratios 0.8,0.6"}},
        {"fit",
         {"highwater fit batch8.hws batch16.hws --budget 24GB",
          "highwater fit batch8.hws batch16.hws --batch 128"}},
        {"check", {"highwater check run.hws run.plan.json"}},
        {"layout", {"highwater layout run.hws run.plan.json"}},
        {"run",
         {"highwater run run.hws", "highwater run run.hws run.plan.json",
          "highwater run run.hws --implementations exact"}},
        {"train",
         {"highwater train --budget 20GB -- python3 train.py",
          "highwater train run.hws run.plan.json -- python3 train.py",
          "highwater train --cap 4GiB -- python3 train.py"}},
        {"apply",
         {"highwater apply 4711 --budget 20GB", "highwater apply 4711 run.hws run.plan.json"}},
        {"release", {"highwater release 4711"}},
        {"export",
         {"highwater export run.hws --to perfetto -o run.pftrace",
          "highwater export run.hws --to csv -o tables/"}},
        {"diff", {"highwater diff run.hws other.hws"}},
        {"categorize", {"highwater categorize run.hws --rules rules.json"}},
        {"view", {"highwater view run.hws", "highwater run.hws"}},
        {"shot",
         {"highwater shot run.hws --view timeline -o timeline.svg",
          "highwater shot run.hws --view peak --preset column -o peak.pdf"}},
        {"report", {"highwater report run.hws -o report.html"}},
        {"doctor", {"highwater doctor", "highwater doctor venv/bin/python"}},
        {"completion", {"source <(highwater completion bash)"}},
        {"manual", {"highwater manual | man -l -", "highwater manual record | man -l -"}}};
    static const std::vector<std::string> none;
    const auto found = examples.find(command);
    return found == examples.end() ? none : found->second;
}

void addExamples(CLI::App& app) {
    for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
        const auto& examples = examplesOf(command->get_name());
        if (examples.empty()) continue;
        std::string text = examples.size() == 1 ? "Example:" : "Examples:";
        for (const std::string& example : examples) text += "\n  " + example;
        command->footer(text);
    }
}

}  // namespace hw::app
