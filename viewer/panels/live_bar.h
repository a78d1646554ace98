// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "viewer/models/live_run.h"
#include "viewer/panels/run_bar.h"

namespace hw::viewer {

/// A training under a plan or within a budget; when that is over, what came of it, until somebody
/// has read it.
class LiveBar : public RunBar {
    Q_OBJECT
public:
    explicit LiveBar(LiveRun& run);

signals:
    /// Somebody has read what came of it.
    void closed();

protected:
    std::optional<Content> content() const override;
    void pressed() override;

private:
    QString peakText() const;
    QStringList plannedTexts() const;
    QStringList freeTexts() const;
    Content ended(QStringList parts, QStringList tips) const;

    LiveRun& run_;
    bool ended_ = false;  // and that has not been read yet
};

}  // namespace hw::viewer
