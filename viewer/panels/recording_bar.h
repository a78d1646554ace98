// SPDX-License-Identifier: GPL-3.0-or-later
// The red mark of a recording that runs, and the button that ends it.
#pragma once

#include <QLabel>
#include <QPushButton>
#include <QTimer>
#include <QWidget>

#include "viewer/models/recorder.h"

namespace hw::viewer {

class RecordingBar : public QWidget {
    Q_OBJECT
public:
    explicit RecordingBar(Recorder& recorder);

private:
    void update();

    Recorder& recorder_;
    QLabel *mark_, *text_;
    QPushButton* stop_;
    QTimer second_;
};

}  // namespace hw::viewer
