// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/live_panel.h"

#include <QVBoxLayout>
#include <algorithm>

#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {
constexpr int kLiveHeaderHeight = 34, kSideMargin = 14;
const QString kUnknown = QStringLiteral("—");

QString coloured(const QColor& colour, const QString& text) {
    return QStringLiteral("<span style='color:%1'>%2</span>")
        .arg(colour.name(), text.toHtmlEscaped());
}

/// What was compared of what was recomputed; empty: nothing was.
QString verifiedText(const LiveRun& run) {
    const std::optional<LiveEnd>& end = run.progress().end();
    if (run.busy() || !end || end->verified == core::Bytes(0)) return {};
    return LivePanel::tr("verified: %1 recomputed, the same as dropped")
        .arg(SizeUnit::fitting(end->verified).text(end->verified));
}

QString endText(const LiveRun& run) {
    const std::optional<LiveEnd>& end = run.progress().end();
    return end && end->exitStatus ? LivePanel::tr("the program has ended")
           : run.budget()         ? LivePanel::tr("the budget is lifted, and the training goes on")
                          : LivePanel::tr("nothing is rescued any more; the training goes on");
}

}  // namespace

LivePanel::LivePanel(LiveRun& run) : run_(run) {
    setObjectName(QStringLiteral("livePanel"));
    setAttribute(Qt::WA_StyledBackground);
    setWhatsThis(
        tr("<p>The peak of each step against the budget, coloured by what decided in the step: "
           "DTR, a plan that has taken over from it, or Mimose.</p>"));
    header_ = makeHeader();
    figures_ = new FigureStrip({tr("at work"), tr("peak"), tr("steps"), tr("evictions"),
                                tr("recomputed ops"), tr("overhead")});
    note_ = new QLabel;
    note_->setObjectName(QStringLiteral("liveNote"));
    note_->setWordWrap(true);
    note_->setTextInteractionFlags(Qt::TextSelectableByMouse);
    note_->setContentsMargins(kSideMargin, 0, kSideMargin, 0);
    plot_ = new LiveStepsPlot;
    plot_->setObjectName(QStringLiteral("liveSteps"));
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 10, 0, 0);
    column->setSpacing(8);
    column->addWidget(figures_);
    column->addWidget(note_);
    column->addWidget(plot_, 1);
    setFocusProxy(plot_);
    connect(&run_, &LiveRun::changed, this, &LivePanel::update);
    connect(plot_, &LiveStepsPlot::timesChanged, this, &LivePanel::showLegend);
    update();
}

QWidget* LivePanel::makeHeader() {
    auto* made = new QWidget;
    made->setObjectName(QStringLiteral("panelHeader"));
    made->setAttribute(Qt::WA_StyledBackground);
    headline_ = new QLabel;
    headline_->setStyleSheet(QStringLiteral("font-weight: 600"));
    legend_ = new Legend;
    auto* row = new QHBoxLayout(made);
    row->setContentsMargins(kSideMargin, 0, kSideMargin, 0);
    row->setSpacing(16);
    row->addItem(new QSpacerItem(0, kLiveHeaderHeight, QSizePolicy::Fixed, QSizePolicy::Fixed));
    row->addWidget(headline_);
    row->addStretch(1);
    row->addWidget(legend_);
    return made;
}

void LivePanel::update() {
    if (!run_.terms()) return;
    const std::optional<core::Bytes> budget = run_.budget();
    headline_->setText(
        budget ? tr("%1 within %2").arg(run_.target(), SizeUnit::fitting(*budget).text(*budget))
               : tr("%1, rescued where memory fails").arg(run_.target()));
    showLegend();
    showFigures();
    showNote();
    plot_->show(run_.progress(), budget);
}

void LivePanel::showLegend() {
    std::vector<Legend::Item> items;
    for (const LiveMode& mode : run_.progress().modes())
        items.push_back({liveModeColour(mode.name), liveModeText(mode.name)});
    if (plot_->timesShown()) items.push_back({liveCostColour(), tr("taken by DTR and plans")});
    if (run_.budget()) items.push_back({theme().text, tr("budget"), true});
    legend_->setItems(std::move(items));
}

void LivePanel::showFigures() {
    const LiveProgress& progress = run_.progress();
    if (progress.steps() == 0) return figures_->setFigures(QStringList(6, kUnknown));
    const core::Bytes highest = progress.highestOfAll();
    const SizeUnit size = SizeUnit::fitting(run_.budget().value_or(highest));
    QStringList steps;
    for (const LiveMode& mode : progress.modes())
        steps << tr("%1 %2").arg(mode.steps).arg(liveModeText(mode.name));
    const std::optional<double> overhead = progress.overhead();
    figures_->setFigures(
        {run_.busy() ? liveModeText(progress.mode()) : tr("ended"),
         run_.budget() ? tr("%1 of %2").arg(size.number(highest), size.text(*run_.budget()))
                       : size.text(highest),
         steps.join(QStringLiteral(" · ")), QString::number(progress.evictions()),
         QString::number(progress.recomputedOps()), overhead ? overheadText(*overhead) : kUnknown});
}

// What went wrong, or else what the tool said last: that a plan takes over, for one.
void LivePanel::showNote() {
    const std::optional<LiveFailure>& failure = run_.failure();
    QString text;
    if (failure) {
        text = coloured(theme().alert, failure->what);
        if (!failure->hint.isEmpty())
            text += QStringLiteral("<br>") + failure->hint.toHtmlEscaped();
    } else {
        QStringList lines = run_.notes();
        lines.prepend(run_.busy() ? run_.status() : endText(run_));
        if (const QString verified = verifiedText(run_); !verified.isEmpty())
            lines.insert(1, verified);
        text = coloured(theme().muted, lines.join(QStringLiteral(" · ")));
    }
    note_->setText(text);
}

void LivePanel::applyTheme() {
    plot_->applyTheme();
    update();
}

}  // namespace hw::viewer
