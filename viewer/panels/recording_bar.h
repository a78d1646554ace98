// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "viewer/models/recorder.h"
#include "viewer/panels/run_bar.h"

namespace hw::viewer {

/// A recording that runs.
class RecordingBar : public RunBar {
    Q_OBJECT
public:
    explicit RecordingBar(Recorder& recorder);

protected:
    std::optional<Content> content() const override;
    void pressed() override { recorder_.stop(); }

private:
    Recorder& recorder_;
};

}  // namespace hw::viewer
