// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/recording_bar.h"

#include <QHBoxLayout>
#include <cmath>

#include "viewer/plots/theme.h"

namespace hw::viewer {

RecordingBar::RecordingBar(Recorder& recorder) : recorder_(recorder) {
    setObjectName(QStringLiteral("recordingBar"));
    setStyleSheet(QStringLiteral("QWidget#recordingBar { background: transparent; }"));
    mark_ = new QLabel(QStringLiteral("●"));
    mark_->setObjectName(QStringLiteral("recordingMark"));
    text_ = new QLabel;
    text_->setObjectName(QStringLiteral("recordingText"));
    stop_ = new QPushButton(tr("Stop"));
    stop_->setObjectName(QStringLiteral("stopRecording"));
    stop_->setToolTip(tr("End the recording; the training goes on"));
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(0, 0, 8, 0);
    row->setSpacing(8);
    for (QWidget* part : std::initializer_list<QWidget*>{mark_, text_, stop_}) row->addWidget(part);
    second_.setInterval(1000);
    connect(&second_, &QTimer::timeout, this, &RecordingBar::update);
    connect(stop_, &QPushButton::clicked, &recorder_, &Recorder::stop);
    connect(&recorder_, &Recorder::changed, this, &RecordingBar::update);
    update();
}

void RecordingBar::update() {
    const Recorder::State state = recorder_.state();
    for (QWidget* part : std::initializer_list<QWidget*>{mark_, text_, stop_})
        part->setVisible(state != Recorder::State::Idle);
    if (state == Recorder::State::Idle) return second_.stop();
    if (!second_.isActive()) second_.start();
    mark_->setStyleSheet(QStringLiteral("color: %1").arg(theme().alert.name()));
    stop_->setEnabled(state != Recorder::State::Stopping);
    const auto passed = static_cast<int>(std::floor(recorder_.seconds()));
    QStringList parts{recorder_.target()};
    if (state == Recorder::State::Starting)
        parts << (recorder_.status().isEmpty() ? tr("connecting…") : recorder_.status());
    else if (state == Recorder::State::Stopping)
        parts << tr("stopping…");
    else
        parts << (recorder_.steps() == 0   ? tr("waiting for the end of a step")
                  : recorder_.steps() == 1 ? tr("1 step")
                                           : tr("%1 steps").arg(recorder_.steps()));
    parts << QStringLiteral("%1:%2").arg(passed / 60).arg(passed % 60, 2, 10, QLatin1Char('0'));
    text_->setText(parts.join(QStringLiteral(" · ")));
}

}  // namespace hw::viewer
