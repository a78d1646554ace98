// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/live_bar.h"

#include <algorithm>

#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

QStringList stepTexts(const LiveProgress& progress) {
    if (progress.steps() == 0) return {LiveBar::tr("waiting for the end of a step")};
    QStringList parts{progress.planned() == 0
                          ? LiveBar::tr("none of %1 steps under the plan").arg(progress.steps())
                      : progress.planned() == 1
                          ? LiveBar::tr("1 step under the plan")
                          : LiveBar::tr("%1 steps under the plan").arg(progress.planned())};
    if (progress.diverged() > 0) parts << LiveBar::tr("%1 left it").arg(progress.diverged());
    return parts;
}

QString divergenceText(const LiveProgress& progress) {
    const std::optional<LiveDivergence>& last = progress.divergence();
    if (!last) return {};
    return LiveBar::tr("step %1 left the plan at op %2: expected %3, came %4")
        .arg(last->step)
        .arg(last->op)
        .arg(last->expected, last->found);
}

}  // namespace

LiveBar::LiveBar(LiveRun& run) : RunBar(QStringLiteral("live")), run_(run) {
    connect(&run_, &LiveRun::changed, this, [this] {
        if (run_.busy()) ended_.reset();
        refresh();
    });
    connect(&run_, &LiveRun::finished, this, [this](const QStringList& notes) {
        ended_ = notes;
        refresh();
    });
}

QString LiveBar::peakText() const {
    const core::Bytes peak = run_.progress().highestPeak(), predicted = run_.planned().plan->peak;
    const SizeUnit size = SizeUnit::fitting(std::max(peak, predicted));
    return tr("peak %1 of %2 predicted").arg(size.number(peak), size.text(predicted));
}

std::optional<RunBar::Content> LiveBar::content() const {
    if (!run_.busy() && !ended_) return std::nullopt;
    const LiveProgress& progress = run_.progress();
    const LiveRun::State state = run_.state();
    QStringList parts{run_.target()}, tips{divergenceText(progress)};
    if (state == LiveRun::State::Starting) {
        parts << (run_.status().isEmpty() ? tr("connecting…") : run_.status());
    } else {
        if (!run_.busy() && progress.planned() == 0)
            parts << tr("over, without a step under the plan");
        else
            parts << stepTexts(progress);
        if (progress.planned() > 0) parts << peakText();
        if (state == LiveRun::State::Stopping) parts << tr("stopping…");
    }
    if (!run_.busy()) {
        parts << *ended_;
        tips << *ended_;
        return Content{theme().muted, parts, tips.join(QLatin1Char('\n')).trimmed(), tr("Close")};
    }
    parts << clockText(run_.seconds());
    tips << tr("Stop takes the plan out; the training goes on without it");
    return Content{theme().accent, parts, tips.join(QLatin1Char('\n')).trimmed(), tr("Stop"),
                   state != LiveRun::State::Stopping};
}

void LiveBar::pressed() {
    if (run_.busy()) return run_.stop();
    ended_.reset();
    refresh();
}

}  // namespace hw::viewer
