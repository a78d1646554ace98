// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/steps_panel.h"

#include <QLabel>
#include <QVBoxLayout>

namespace hw::viewer {
namespace {
constexpr int kHighest = 96;  // pixels: a strip, however the window is shared out
}

const PanelKind StepsPanel::kKind{
    .name = "steps",
    .title = "Recording",
    .help =
        "<p>The recorded steps side by side. A click opens a step in all other views, and so do ← "
        "and → while the strip has the keys.</p>",
    .area = PanelArea::Strip,
    .make = makePanel<StepsPanel>};

StepsPanel::StepsPanel(Workspace& workspace) : Panel(workspace, kKind) {
    note_ = new QLabel;
    note_->setObjectName(QStringLiteral("muted"));
    addToHeader(note_);
    plot_ = new StepsPlot;
    plot_->setObjectName(QStringLiteral("stepsPlot"));
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(plot_);
    setFocusProxy(plot_);
    setMaximumHeight(kHighest);
    connect(&workspace, &Workspace::documentChanged, this, &StepsPanel::reload);
    connect(plot_, &StepsPlot::stepClicked, &workspace, &Workspace::openStep);
    reload();
}

bool StepsPanel::applies() const {
    return workspace().document()->overview.size() > 1 || workspace().loader().following();
}

void StepsPanel::reload() {
    const DocumentPointer& document = workspace().document();
    plot_->setDocument(document);
    if (!document || document->overview.empty()) return note_->clear();
    note_->setText(workspace().loader().following()
                       ? tr("step %1 is the last complete one").arg(document->step)
                       : tr("%1 steps · a click or ← → opens one").arg(document->overview.size()));
}

}  // namespace hw::viewer
