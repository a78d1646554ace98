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
        if (run_.busy()) ended_ = false;
        refresh();
    });
    const auto over = [this] {
        ended_ = true;
        refresh();
    };
    connect(&run_, &LiveRun::finished, this, over);
    connect(&run_, &LiveRun::failed, this, [this, over] {
        if (run_.terms() && run_.began()) over();
    });
}

QString LiveBar::peakText() const {
    const core::Bytes peak = run_.progress().highestPeak(), predicted = run_.planned().plan->peak;
    const SizeUnit size = SizeUnit::fitting(std::max(peak, predicted));
    return tr("peak %1 of %2 predicted").arg(size.number(peak), size.text(predicted));
}

QStringList LiveBar::plannedTexts() const {
    const LiveProgress& progress = run_.progress();
    if (!run_.busy() && progress.planned() == 0) return {tr("over, without a step under the plan")};
    QStringList parts = stepTexts(progress);
    if (progress.planned() > 0) parts << peakText();
    if (!run_.busy() && progress.end() && progress.end()->verified > core::Bytes(0))
        parts
            << tr("%1 verified")
                   .arg(SizeUnit::fitting(progress.end()->verified).text(progress.end()->verified));
    return parts;
}

QStringList LiveBar::freeTexts() const {
    const LiveProgress& progress = run_.progress();
    if (progress.steps() == 0)
        return {run_.busy() ? tr("waiting for the end of a step") : tr("over, without a step")};
    QStringList parts, steps;
    if (run_.busy()) parts << tr("%1 at work").arg(liveModeText(progress.mode()));
    for (const LiveMode& mode : progress.modes())
        steps << tr("%1 %2").arg(mode.steps).arg(liveModeText(mode.name));
    const core::Bytes highest = progress.highestOfAll();
    const SizeUnit size = SizeUnit::fitting(run_.budget().value_or(highest));
    return parts << tr("steps: %1").arg(steps.join(QStringLiteral(", ")))
                 << (run_.budget()
                         ? tr("peak %1 of %2").arg(size.number(highest), size.text(*run_.budget()))
                         : tr("peak %1").arg(size.text(highest)));
}

std::optional<RunBar::Content> LiveBar::content() const {
    if (!run_.busy() && !ended_) return std::nullopt;
    const LiveRun::State state = run_.state();
    QStringList parts{run_.target()}, tips{divergenceText(run_.progress())};
    if (state == LiveRun::State::Starting)
        parts << (run_.status().isEmpty() ? tr("connecting…") : run_.status());
    else
        parts << (run_.terms() ? freeTexts() : plannedTexts());
    if (state == LiveRun::State::Stopping) parts << tr("stopping…");
    if (!run_.busy()) return ended(std::move(parts), std::move(tips));
    parts << clockText(run_.seconds());
    tips << (!run_.terms()   ? tr("Stop takes the plan out; the training goes on without it")
             : run_.budget() ? tr("Stop lifts the budget; the training goes on without it")
                             : tr("Stop ends the rescue; the training goes on without it"));
    return Content{theme().accent, parts, tips.join(QLatin1Char('\n')).trimmed(), tr("Stop"),
                   state != LiveRun::State::Stopping};
}

RunBar::Content LiveBar::ended(QStringList parts, QStringList tips) const {
    const std::optional<LiveFailure>& failure = run_.failure();
    if (failure) {
        parts << failure->what;
        tips << failure->what << failure->hint;
    } else {
        parts << run_.notes();
        tips << run_.notes();
    }
    return {failure ? theme().alert : theme().muted, parts, tips.join(QLatin1Char('\n')).trimmed(),
            tr("Close")};
}

void LiveBar::pressed() {
    if (run_.busy()) return run_.stop();
    ended_ = false;
    refresh();
    emit closed();
}

}  // namespace hw::viewer
