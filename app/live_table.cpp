// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/live_table.h"

#include <iomanip>
#include <iostream>

#include "app/recording.h"
#include "core/base/file.h"
#include "live/host/report.h"

namespace hw::app {
namespace {

using namespace hw::core;

/// Empty where no allocation had failed.
std::string rescuedText(const Json& rescues) {
    std::int64_t allocations = 0, refused = 0, freed = 0, evicted = 0;
    for (const Json& each : rescues) {
        allocations += each["allocations"].get<std::int64_t>();
        refused += each["refused"].get<std::int64_t>();
        freed += each["freed_bytes"].get<std::int64_t>();
        evicted += each["evicted"].get<std::int64_t>();
    }
    if (rescues.empty()) return "";
    return std::to_string(allocations) + " allocations that had failed, in " +
           std::to_string(rescues.size()) + " steps: " + std::to_string(evicted) +
           " evictions freed " + humanBytes(Bytes(freed)) +
           (refused > 0 ? "; " + std::to_string(refused) + " failed all the same" : "");
}

void tell(const Json& report, const std::string& whose) {
    const auto row = [](const char* name, const std::string& value) {
        std::cerr << "  " << std::left << std::setw(16) << name << value << '\n';
    };
    const auto bytes = [&](const char* key) {
        return report[key].is_null() ? std::string("-") : humanBytes(Bytes(report[key]));
    };
    const auto overhead = [&](const char* key) {
        return report[key].is_null() ? std::string("-") : percent(report[key]);
    };
    const auto shortfall = [&] {
        if (report["steps_above_budget"] > 0)
            row("above budget", report["steps_above_budget"].dump() + " steps, by up to " +
                                    bytes("above_budget_bytes"));
        for (const Json& why : report["why"]) row("why", why.get<std::string>());
    };
    const Json& modes = report["modes"];
    const std::string rescued = rescuedText(report["rescues"]);
    const auto verified = [&] {
        if (report["verified_bytes"] > 0 && report["mismatches"].empty())
            row("verified", bytes("verified_bytes") + " recomputed, all as they were dropped");
        if (report["uncompared_ops"] > 0)
            row("not compared", report["uncompared_ops"].dump() +
                                    " ops run again that are not deterministic (see notes)");
    };
    std::cerr << "highwater: " << whose << report["steps"] << " steps, ";
    if (modes["dtr"] > 0 || modes["mimose"] > 0) {
        std::cerr << modes["dtr"] << " under DTR, " << modes["plan"] << " under a plan";
        if (modes["mimose"] > 0)
            std::cerr << ", " << modes["mimose"] << " under Mimose's for their size";
        std::cerr << '\n';
        row("peak", bytes("measured_peak_bytes") + " (budget " + bytes("budget_bytes") + ")");
        shortfall();
        row("step time",
            overhead("measured_overhead") + " (the plan's " + overhead("predicted_overhead") + ")");
        row("evicted", report["evictions"].dump() + " times, " + report["recomputed_ops"].dump() +
                           " ops run again");
        if (!rescued.empty()) row("rescued", rescued);
        verified();
        return;
    }
    std::cerr << report["steps_planned"] << " under the plan, " << report["steps_diverged"]
              << " left it\n";
    row("peak",
        bytes("measured_peak_bytes") + " (predicted " + bytes("predicted_peak_bytes") + ")");
    shortfall();
    row("step time",
        overhead("measured_overhead") + " (predicted " + overhead("predicted_overhead") + ")");
    if (report["offloaded_bytes"] > 0)
        row("offloaded", bytes("offloaded_bytes") + ", " +
                             humanTime(Nanoseconds(report["waited_ns"].get<std::int64_t>())) +
                             " waited for copies");
    if (!rescued.empty()) row("rescued", rescued);
    verified();
    for (const Json& each : report["divergences"]) {
        std::cerr << "  step " << each["step"] << ", op " << each["op"] << ": expected "
                  << each["expected"].get<std::string>() << ", came "
                  << each["found"].get<std::string>() << '\n';
        if (&each - &report["divergences"][0] == 4) break;
    }
}

}  // namespace

Result<std::vector<live::LivePlan>> prepare(const live::LivePlanFrom& from) {
    auto prepared = live::prepareLive(from, terminalProgress(), noteToTerminal);
    clearProgress();
    return prepared;
}

void keepInSession(const std::string& session, const live::LiveSummary& summary,
                   const std::vector<live::LivePlan>& plans) {
    if (const Status done = live::storeLive(session, summary, plans); !done)
        std::cerr << "note: the session does not keep what was measured: " << done.error().what
                  << '\n';
}

Status tellReport(const live::LiveSummary& summary, const Json& report, const std::string& file,
                  const Common& common) {
    for (const std::string& note : summary.notes) std::cerr << "note: " << note << '\n';
    if (common.json)
        answerWith(report);
    else if (!report.contains("ranks"))
        tell(report, "");
    else
        for (const Json& rank : report["ranks"]) tell(rank, "rank " + rank["rank"].dump() + ": ");
    return file.empty() ? Status() : writeFileAtomically(file, report.dump(2) + '\n');
}

}  // namespace hw::app
