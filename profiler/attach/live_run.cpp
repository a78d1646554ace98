// SPDX-License-Identifier: MIT
#include "profiler/attach/live_run.h"

#include <algorithm>
#include <cstring>
#include <fstream>

namespace hw::profiler {

using core::Error;
using core::ErrorCode;

core::Status handOver(const std::vector<LivePrograms>& programs, const std::string& path) {
    for (const LivePrograms& each : programs) {
        const std::string of = each.rank ? ".rank" + std::to_string(*each.rank) : "";
        for (std::size_t i = 0; i < each.programs.size(); ++i) {
            std::ofstream file(path + of + "." + std::to_string(i), std::ios::binary);
            file << each.programs[i].bytes;
            if (!file.flush())
                return Error{ErrorCode::Internal, "the plan could not be handed over: " + path,
                             "check that the folder for temporary files has room"};
        }
    }
    return {};
}

core::Result<wire::ConfigRecord> liveConfig(const FrameworkFiles& framework,
                                            const std::string& programs, const Progress& progress) {
    wire::ConfigRecord record;
    record.flags = wire::kConfigLive;
    std::strncpy(record.livePrograms, programs.c_str(), sizeof(record.livePrograms) - 1);
    const auto library = nativeCapture(framework, progress);
    if (!library)
        return Error{ErrorCode::Target,
                     "no runtime for the torch of this program: " + library.error().what,
                     "a plan needs one: install a C++ compiler (g++)"};
    std::strncpy(record.nativeCapture, library->c_str(), sizeof(record.nativeCapture) - 1);
    return record;
}

void StepTeller::tellNew() {
    if (!listener_) return;
    for (const Assembler* process : server_.admittedProcesses()) {
        const auto& steps = process->liveSteps();
        for (std::size_t& next = told_[process]; next < steps.size(); ++next) {
            LiveStep step{process->rank(), steps[next]};
            const auto& left = process->divergences();
            const auto own =
                std::find_if(left.begin(), left.end(), [&](const wire::LiveDivergenceRecord& each) {
                    return each.step == step.figures.step;
                });
            if (own != left.end()) step.divergence = &*own;
            const wire::LiveCurveRecord& curve = process->liveCurve();
            if (!curve.bytes.empty() && curve.step == step.figures.step) step.curve = &curve;
            listener_(step);
        }
    }
}

LiveSummary liveSummary(const Server& server) {
    LiveSummary summary;
    for (const Assembler* process : server.admittedProcesses())
        if (!process->liveSteps().empty())
            summary.processes.push_back(
                {process->rank(), process->liveSteps(), process->divergences()});
    std::sort(summary.processes.begin(), summary.processes.end(),
              [](const LiveProcess& a, const LiveProcess& b) { return a.rank < b.rank; });
    if (summary.processes.empty()) summary.processes.emplace_back();
    summary.notes = server.notes();
    for (const Assembler* process : server.admittedProcesses())
        for (const wire::LiveNoteRecord& note : process->liveNotes())
            if (note.kind == wire::LiveNoteKind::Shortage)
                summary.shortage = note.text;
            else
                summary.notes.push_back(note.text);
    for (const std::string& fault : server.faults())
        summary.notes.push_back("no plan was carried out: " + fault);
    return summary;
}

}  // namespace hw::profiler
