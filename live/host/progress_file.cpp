// SPDX-License-Identifier: MIT
#include "live/host/progress_file.h"

#include "live/host/report.h"

namespace hw::live {

core::Status ProgressFile::open(const std::string& path) {
    if (path.empty()) return {};
    path_ = path;
    file_.open(path, std::ios::app);
    if (file_) return {};
    return core::Error{core::ErrorCode::Usage, "cannot write '" + path + "'",
                       "choose another file with --progress"};
}

void ProgressFile::step(const LiveStep& step) {
    if (!wanted()) return;
    const auto& figures = step.figures;
    Json event{{"event", "step"},
               {"rank", step.rank},
               {"step", figures.step},
               {"mode", liveModeName(figures.mode)},
               {"begin_ns", figures.beginNs},
               {"end_ns", figures.endNs},
               {"peak_bytes", figures.peak},
               {"recomputed_ops", figures.recomputed},
               {"restored_bytes", figures.restored},
               {"evictions", figures.evictions},
               {"recomputed_ns", figures.recomputedNs},
               {"runtime_ns", figures.runtimeNs},
               {"divergence", nullptr}};
    if (step.divergence != nullptr)
        event["divergence"] = {{"op", step.divergence->op},
                               {"expected", step.divergence->expected},
                               {"found", step.divergence->found}};
    if (step.rescue != nullptr) event["rescue"] = rescueOf(*step.rescue);
    if (step.curve != nullptr) {
        Json curve = Json::array();
        for (const std::int64_t bytes : step.curve->bytes)
            curve.push_back(bytes + step.curve->base);
        event["curve"] = std::move(curve);
    }
    line(event);
}

core::Status ProgressFile::ended(const Json& report) {
    if (!wanted()) return {};
    line({{"event", "ended"}, {"report", report}});
    if (file_) return {};
    return core::Error{core::ErrorCode::Internal, "'" + path_ + "' is not complete",
                       "make room on the disk, or choose another file with --progress"};
}

/// A reader sees whole lines only, but for one at the end.
void ProgressFile::line(const Json& event) {
    file_ << event.dump() + "\n" << std::flush;
}

}  // namespace hw::live
