// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/live_progress.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <algorithm>

namespace hw::viewer {
namespace {

LiveEnd endOf(const QJsonObject& report) {
    const QJsonValue status = report[QLatin1String("exit_status")];
    return {status.isDouble() ? std::optional(status.toInt()) : std::nullopt};
}

}  // namespace

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
    ++steps_;
    underPlan_ = event[QLatin1String("mode")] == QLatin1String("plan");
    if (underPlan_) {
        ++planned_;
        lastPeak_ = core::Bytes(event[QLatin1String("peak_bytes")].toInteger());
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
