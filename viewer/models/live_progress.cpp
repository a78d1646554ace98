// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/live_progress.h"

#include <QCoreApplication>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <algorithm>

namespace hw::viewer {
namespace {

LiveEnd endOf(const QJsonObject& report) {
    const QJsonValue status = report[QLatin1String("exit_status")];
    const QJsonValue overhead = report[QLatin1String("measured_overhead")];
    return {status.isDouble() ? std::optional(status.toInt()) : std::nullopt,
            overhead.isDouble() ? std::optional(overhead.toDouble()) : std::nullopt,
            core::Bytes(report[QLatin1String("verified_bytes")].toInteger())};
}

std::optional<double> median(std::vector<double> values) {
    if (values.empty()) return std::nullopt;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

}  // namespace

QString liveModeText(const QString& name) {
    if (name == QLatin1String("dtr")) return QStringLiteral("DTR");
    if (name == QLatin1String("mimose")) return QStringLiteral("Mimose");
    if (name == QLatin1String("plan")) return QCoreApplication::translate("live", "plan");
    if (name == QLatin1String("none")) return QCoreApplication::translate("live", "nothing");
    return name;
}

std::size_t LiveProgress::modeNamed(const QString& name) {
    const auto known = std::find_if(modes_.begin(), modes_.end(),
                                    [&](const LiveMode& mode) { return mode.name == name; });
    if (known != modes_.end()) return static_cast<std::size_t>(known - modes_.begin());
    modes_.push_back({name, 0});
    return modes_.size() - 1;
}

void LiveProgress::keep(const QJsonObject& event) {
    const auto count = [&](const char* key) { return event[QLatin1String(key)].toInteger(); };
    const auto time = [&](const char* key) { return core::Nanoseconds(count(key)); };
    LiveStep step;
    step.step = count("step");
    step.mode = modeNamed(event[QLatin1String("mode")].toString());
    step.peak = core::Bytes(count("peak_bytes"));
    step.evictions = count("evictions");
    step.recomputedOps = count("recomputed_ops");
    step.time = time("end_ns") - time("begin_ns");
    step.recomputing = time("recomputed_ns");
    step.runtime = time("runtime_ns");
    ++modes_[step.mode].steps;
    evictions_ += step.evictions;
    recomputedOps_ += step.recomputedOps;
    highestOfAll_ = std::max(highestOfAll_, step.peak);
    history_.push_back(step);
}

std::optional<double> LiveProgress::overhead() const {
    if (end_) return end_->overhead;
    std::vector<double> planned, within, without, alone;
    for (const LiveStep& step : history_) {
        const QString& mode = modeOf(step);
        const auto took = static_cast<double>(step.time.count());
        if (mode == QLatin1String("plan")) {
            planned.push_back(took);
        } else if (mode == QLatin1String("none")) {
            without.push_back(took);
        } else {
            within.push_back(took);
            alone.push_back(
                static_cast<double>((step.time - step.recomputing - step.runtime).count()));
        }
    }
    const auto with = median(planned.empty() ? within : planned);
    const auto base = median(without.empty() ? alone : without);
    if (!with || !base || *base <= 0) return std::nullopt;
    return *with / *base;
}

LiveProgress::Told LiveProgress::take(const QByteArray& line) {
    const QJsonObject event = QJsonDocument::fromJson(line).object();
    const QString kind = event[QLatin1String("event")].toString();
    if (kind == QLatin1String("ended")) {
        end_ = endOf(event[QLatin1String("report")].toObject());
        return Told::End;
    }
    if (kind != QLatin1String("step")) return Told::Nothing;
    const qint64 rank = event[QLatin1String("rank")].toInteger();
    if (rank != rank_.value_or(rank)) return Told::Nothing;
    rank_ = rank;
    keep(event);
    underPlan_ = event[QLatin1String("mode")] == QLatin1String("plan");
    if (underPlan_) {
        ++planned_;
        lastPeak_ = history_.back().peak;
        highestPeak_ = std::max(highestPeak_, lastPeak_);
    }
    if (const QJsonValue left = event[QLatin1String("divergence")]; left.isObject()) {
        ++diverged_;
        divergence_ = {
            event[QLatin1String("step")].toInteger(), left[QLatin1String("op")].toInteger(),
            left[QLatin1String("expected")].toString(), left[QLatin1String("found")].toString()};
    }
    if (const QJsonArray bytes = event[QLatin1String("curve")].toArray(); !bytes.isEmpty()) {
        curve_.clear();
        for (const QJsonValue& each : bytes) curve_.emplace_back(each.toInteger());
    }
    return Told::Step;
}

}  // namespace hw::viewer
