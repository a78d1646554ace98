// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "viewer/models/live_run.h"
#include "viewer/panels/run_bar.h"

namespace hw::viewer {

/// A training under a plan; when that is over, what came of it, until somebody has read it.
class LiveBar : public RunBar {
    Q_OBJECT
public:
    explicit LiveBar(LiveRun& run);

protected:
    std::optional<Content> content() const override;
    void pressed() override;

private:
    QString peakText() const;

    LiveRun& run_;
    std::optional<QStringList> ended_;  // with these notes
};

}  // namespace hw::viewer
