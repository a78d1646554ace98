// SPDX-License-Identifier: MIT
#include "live/host/live_run.h"

#include <algorithm>
#include <cstring>
#include <fstream>

#include "live/host/kept_ops.h"

namespace hw::live {

using namespace hw::profiler;

using core::Error;
using core::ErrorCode;

namespace {

/// Of that step, which is one of the last; null: there is none.
template <typename Record>
const Record* ofStep(const std::vector<Record>& records, std::int64_t step) {
    const auto own = std::find_if(records.rbegin(), records.rend(),
                                  [&](const Record& each) { return each.step == step; });
    return own != records.rend() ? &*own : nullptr;
}

std::string seenOf(const Server& server) {
    using wire::Milestone;
    if (!server.everConnected()) return "the program ended before it could be watched";
    if (!server.saw(Milestone::Torch)) return "the program was not seen to import torch";
    if (!server.saw(Milestone::Forward) && !server.saw(Milestone::Backward))
        return "no forward with gradients was seen";
    if (!server.saw(Milestone::Backward))
        return "a forward with gradients was seen, but no backward pass";
    return std::string("a forward and a backward pass were seen") +
           (server.saw(Milestone::Optimizer) ? ", and an optimizer, but no whole step"
                                             : ", but no end of a step");
}

void addOnce(std::vector<std::string>& notes, const std::string& note) {
    if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
}

}  // namespace

core::Status writePrograms(const std::vector<LivePrograms>& programs, const std::string& path,
                           std::size_t first) {
    for (const LivePrograms& each : programs) {
        const std::string of = each.rank ? ".rank" + std::to_string(*each.rank) : "";
        for (std::size_t i = first; i < each.programs.size(); ++i) {
            std::ofstream file(path + of + "." + std::to_string(i), std::ios::binary);
            file << each.programs[i].bytes;
            if (!file.flush())
                return Error{ErrorCode::Internal, "the plan could not be handed over: " + path,
                             "check that the folder for temporary files has room"};
        }
    }
    return {};
}

core::Result<wire::ConfigRecord> liveConfig(const std::optional<FrameworkFiles>& framework,
                                            const LiveLimits& limits, const std::string& files,
                                            const Progress& progress) {
    wire::ConfigRecord record;
    record.flags = wire::kConfigLive | (limits.onOom ? wire::kConfigOnOom : 0);
    record.cap = limits.cap ? limits.cap->count() : 0;
    record.flags |= limits.verify | (limits.stableSources ? wire::kConfigStableSources : 0) |
                    (limits.planners.any() ? wire::kConfigPlanners : 0) |
                    (limits.partition ? wire::kConfigPartition : 0);
    record.heuristic = limits.heuristic;
    std::strncpy(record.livePrograms, files.c_str(), sizeof(record.livePrograms) - 1);
    if (!framework) {
        record.flags |= wire::kConfigNative;
        return record;
    }
    const auto library = nativeCapture(*framework, progress);
    if (!library)
        return Error{ErrorCode::Target,
                     "no runtime for the torch of this program: " + library.error().what,
                     "a plan needs one: install a C++ compiler (g++)"};
    std::strncpy(record.nativeCapture, library->c_str(), sizeof(record.nativeCapture) - 1);
    return record;
}

void writeKeptOps(const std::vector<std::string>& command, const std::string& folder,
                  const std::string& path) {
    std::ofstream(path + wire::kLiveKept, std::ios::binary) << keptOps(command, folder);
}

void rememberMismatches(const std::vector<std::string>& command, const std::string& folder,
                        const LiveSummary& summary) {
    for (const LiveProcess& process : summary.processes)
        rememberMismatches(command, folder, process.mismatches);
}

void StepTeller::tellRescue(const Assembler& process) {
    if (process.rescues().empty() || !rescued_.insert(&process).second) return;
    const wire::LiveRescueRecord& first = process.rescues().front();
    const std::string rank =
        server_.admittedProcesses().size() > 1 ? " of rank " + std::to_string(process.rank()) : "";
    progress_("an allocation failed in step " + std::to_string(first.step) + rank + ": " +
              first.op + " asked for " + core::humanBytes(core::Bytes(first.bytes)) + "; " +
              (first.refused > 0 && first.allocations == 0
                   ? "what could be evicted was not enough"
                   : std::to_string(first.evictions) + " tensors (" +
                         core::humanBytes(core::Bytes(first.freed)) +
                         ") were evicted in this step, and it goes on"));
}

void StepTeller::tellNew() {
    for (const Assembler* process : server_.admittedProcesses()) {
        tellRescue(*process);
        if (!listener_) continue;
        const auto& steps = process->liveSteps();
        for (std::size_t& next = told_[process]; next < steps.size(); ++next) {
            LiveStep step{process->rank(), steps[next]};
            step.divergence = ofStep(process->divergences(), step.figures.step);
            step.rescue = ofStep(process->rescues(), step.figures.step);
            const wire::LiveCurveRecord& curve = process->liveCurve();
            if (!curve.bytes.empty() && curve.step == step.figures.step) step.curve = &curve;
            listener_(step);
        }
    }
}

LiveSummary liveSummary(const Server& server) {
    LiveSummary summary;
    for (const Assembler* process : server.admittedProcesses())
        if (!process->liveSteps().empty() || !process->rescues().empty() ||
            !process->mismatches().empty())
            summary.processes.push_back({process->rank(), process->liveSteps(),
                                         process->divergences(), process->rescues(),
                                         process->mismatches()});
    std::sort(summary.processes.begin(), summary.processes.end(),
              [](const LiveProcess& a, const LiveProcess& b) { return a.rank < b.rank; });
    if (summary.processes.empty()) summary.processes.emplace_back();
    summary.notes = server.notes();
    for (const Assembler* process : server.admittedProcesses())
        for (const wire::LiveNoteRecord& note : process->liveNotes()) {
            if (note.kind == wire::LiveNoteKind::Shortage) {
                summary.shortage = note.text;
                continue;
            }
            if (note.kind == wire::LiveNoteKind::Fault) summary.fault = note.text;
            addOnce(summary.notes, note.text);
        }
    for (const std::string& fault : server.faults())
        addOnce(summary.notes, "no plan was carried out: " + fault);
    summary.seen = seenOf(server);
    return summary;
}

}  // namespace hw::live
