// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/sizes_panel.h"

#include <QVBoxLayout>
#include <algorithm>

#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

// The budget's share of its step, taken of the largest one.
core::Bytes budgetOf(const SizeSamples& samples, double share) {
    core::Bytes largest;
    for (const SizeSamples::Step& step : samples.steps)
        largest = std::max(largest, step.profile.peak);
    return core::Bytes(static_cast<std::int64_t>(static_cast<double>(largest.count()) * share));
}

}  // namespace

const PanelKind SizesPanel::kKind{
    .name = "sizes",
    .title = "Input sizes",
    .help =
        "<p>Where the recorded steps have inputs of different sizes: the peak over the input size, "
        "the estimate fitted to it, and the plan that each size gets within one budget.</p>",
    .area = PanelArea::LowerRight,
    .make = makePanel<SizesPanel>,
    .needsStep = true};

SizesPanel::SizesPanel(Workspace& workspace) : Panel(workspace, kKind) {
    note_ = new QLabel;
    note_->setObjectName(QStringLiteral("muted"));
    note_->setMinimumWidth(1);
    legend_ = new Legend;
    addToHeader(note_);
    addToHeader(legend_);
    plot_ = new SizesPlot;
    model_ = new SizeModel(this);
    table_ = new TableView(model_);
    split_ = new QSplitter(Qt::Vertical);
    split_->setHandleWidth(1);
    table_->setMinimumHeight(40);  // the window as a whole stays small enough for a small screen
    split_->addWidget(plot_);
    split_->addWidget(table_);
    split_->setSizes({600, 400});  // their shares
    empty_ = makeNote();
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(split_, 1);
    column->addWidget(empty_, 1);
    setFocusProxy(table_);
    connect(&workspace, &Workspace::documentChanged, this, &SizesPanel::forget);
    connect(&workspace, &Workspace::budgetChanged, this, [this] {
        stale_ = true;
        if (isVisible()) reload();
    });
    connect(plot_, &SizesPlot::stepPicked, &workspace, &Workspace::openStep);
    connect(table_, &TableView::picked, this, [this](const QModelIndex& index) {
        this->workspace().openStep(model_->at(index.row()).step);
    });
    forget();
}

// Another step of the same file has the same samples.
void SizesPanel::forget() {
    const DocumentPointer& document = workspace().document();
    if (!document || document->path != path_ || workspace().loader().following())
        samples_ = nullptr;
    path_ = document ? document->path : std::string();
    stale_ = true;
    if (isVisible()) reload();
}

void SizesPanel::showEvent(QShowEvent* event) {
    Panel::showEvent(event);
    if (stale_) reload();
}

void SizesPanel::reload() {
    stale_ = false;
    queue_.cancelAll();
    const DocumentPointer& document = workspace().document();
    if (!document || !document->plannable) {
        split_->hide();
        empty_->setText(noStep());
        return empty_->show();
    }
    queue_.submit([this, path = path_, share = workspace().budgetRatio(), samples = samples_](
                      const TaskQueue::Cancelled& cancelled) mutable -> TaskQueue::Delivery {
        SizeStudy study;
        if (!samples) {
            auto loaded = loadSizes(path, cancelled);
            if (loaded)
                samples = *loaded;
            else
                study.why = toQString(loaded.error().what);
        }
        if (samples) study = studySizes(*samples, budgetOf(*samples, share), cancelled);
        return [this, samples, study] {
            samples_ = samples;
            take(study);
        };
    });
}

void SizesPanel::take(const SizeStudy& study) {
    const bool any = !study.rows.empty();
    split_->setVisible(any);
    empty_->setVisible(!any);
    empty_->setText(study.why);
    const SizeUnit unit = workspace().document()->size;
    plot_->show(study, unit);
    model_->setStudy(study, unit);
    table_->fitColumns();
    note_->setText(!any ? QString()
                        : tr("mimose at %1 of the largest peak · %2 plans for %3 steps")
                              .arg(percentText(workspace().budgetRatio()))
                              .arg(study.plansMade)
                              .arg(study.rows.size()));
    applyTheme();
}

void SizesPanel::applyTheme() {
    plot_->applyTheme();
    const QColor muted = theme().muted;
    legend_->setItems(model_->rowCount() == 0
                          ? std::vector<Legend::Item>{}
                          : std::vector<Legend::Item>{{muted, tr("recorded"), false, true},
                                                      {muted, tr("estimated"), true},
                                                      {theme().accent, tr("under its plan")}});
}

core::Status SizesPanel::prepareShot(const std::vector<std::string>&) {
    stale_ = false;
    if (!workspace().document()->plannable) {
        reload();
        return {};
    }
    auto samples = loadSizes(path_);
    if (!samples) return samples.error();
    take(studySizes(**samples, budgetOf(**samples, workspace().budgetRatio())));
    return {};
}

}  // namespace hw::viewer
