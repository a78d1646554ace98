// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/recording_bar.h"

#include "viewer/plots/theme.h"

namespace hw::viewer {

RecordingBar::RecordingBar(Recorder& recorder)
    : RunBar(QStringLiteral("recording")), recorder_(recorder) {
    connect(&recorder_, &Recorder::changed, this, &RecordingBar::refresh);
}

std::optional<RunBar::Content> RecordingBar::content() const {
    const Recorder::State state = recorder_.state();
    if (state == Recorder::State::Idle) return std::nullopt;
    QStringList parts{recorder_.target()};
    if (state == Recorder::State::Starting)
        parts << (recorder_.status().isEmpty() ? tr("connecting…") : recorder_.status());
    else if (state == Recorder::State::Stopping)
        parts << tr("stopping…");
    else
        parts << (recorder_.steps() == 0   ? tr("waiting for the end of a step")
                  : recorder_.steps() == 1 ? tr("1 step")
                                           : tr("%1 steps").arg(recorder_.steps()));
    parts << clockText(recorder_.seconds());
    return Content{theme().alert, parts, tr("Stop ends the recording; the training goes on"),
                   tr("Stop"), state != Recorder::State::Stopping};
}

}  // namespace hw::viewer
