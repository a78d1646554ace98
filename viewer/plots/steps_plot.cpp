// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/plots/steps_plot.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QToolTip>
#include <algorithm>

#include "viewer/plots/area_graph.h"
#include "viewer/plots/axis_ticker.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

constexpr double kStepsHeadroom = 1.25, kNanoseconds = 1e9;
constexpr double kGapShare = 0.004;  // of what is seen; narrower ones could not be seen

double seconds(core::Nanoseconds time) {
    return static_cast<double>(time.count()) / kNanoseconds;
}

}  // namespace

StepsPlot::StepsPlot(QWidget* parent) : Plot(parent) {
    axisRect()->setMinimumMargins(QMargins(kLeftMargin, 8, kRightMargin, 22));
    xAxis->setTicker(QSharedPointer<UnitTicker>::create(QStringLiteral("s"), 7));
    const auto step = [this] {
        auto* made = new AreaGraph(xAxis, yAxis);
        made->setLineStyle(QCPGraph::lsStepLeft);
        made->setAdaptiveSampling(false);  // reduced already, peaks kept
        return made;
    };
    highest_ = step(), current_ = step();
    setInteractions(QCP::iRangeDrag | QCP::iRangeZoom);
    axisRect()->setRangeDrag(Qt::Horizontal);
    axisRect()->setRangeZoom(Qt::Horizontal);
    peak_ = new QCPItemText(this);
    peak_->setClipToAxisRect(false);
    peak_->setPositionAlignment(Qt::AlignHCenter | Qt::AlignBottom);
    peak_->setVisible(false);
    connect(xAxis, qOverload<const QCPRange&>(&QCPAxis::rangeChanged), this,
            [this](const QCPRange& wanted) {
                if (!document_ || document_->overview.empty()) return;
                const double end = seconds(document_->overview.back().end);
                const double width = std::clamp(wanted.size(), end / 1e5, end);
                const double lower = std::clamp(wanted.lower, 0.0, end - width);
                const QSignalBlocker quiet(xAxis);
                xAxis->setRange(lower, lower + width);
            });
    setMinimumHeight(44);
    setMouseTracking(true);
    applyTheme();
}

void StepsPlot::applyTheme() {
    Plot::applyTheme();
    xAxis->grid()->setVisible(false);
    highest_->setPen(Qt::NoPen);
    highest_->setBrush(blend(theme().panel, theme().accent, theme().light ? 0.30 : 0.34));
    current_->setPen(Qt::NoPen);
    current_->setBrush(blend(theme().panel, theme().accent, 0.85));
    for (QCPItemRect* gap : gaps_) gap->setBrush(QBrush(theme().line, Qt::BDiagPattern));
    peak_->setColor(theme().alert);
    peak_->setFont(uiFont(kAxisPixels, true));
    replot(rpQueuedReplot);
}

void StepsPlot::setDocument(const DocumentPointer& document) {
    document_ = document;
    rebuild();
}

void StepsPlot::addGap(double from, double to) {
    auto* gap = new QCPItemRect(this);
    gap->setLayer(QStringLiteral("background"));
    gap->setPen(Qt::NoPen);
    gap->setBrush(QBrush(theme().line, Qt::BDiagPattern));
    gap->topLeft->setTypeY(QCPItemPosition::ptAxisRectRatio);
    gap->bottomRight->setTypeY(QCPItemPosition::ptAxisRectRatio);
    gap->topLeft->setCoords(from, 0);
    gap->bottomRight->setCoords(to, 1);
    gaps_.push_back(gap);
}

void StepsPlot::rebuild() {
    for (QCPItemRect* gap : gaps_) removeItem(gap);
    gaps_.clear();
    drawn_ = 0;
    QVector<QCPGraphData> high, current;
    peak_->setVisible(false);
    if (document_ && !document_->overview.empty()) {
        const std::vector<StepSummary>& steps = document_->overview;
        const SizeUnit& size = document_->size;
        const double end = std::max(1e-9, seconds(steps.back().end));
        const StepSummary* highest = &steps.front();
        double before = 0;
        for (const StepSummary& step : steps) {
            const double begin = seconds(step.begin);
            if (drawn_ > 0 && begin - before > end * kGapShare) addGap(before, begin);
            for (const StepSummary::Piece& piece : step.pieces) {
                high.push_back({seconds(piece.begin), size.value(piece.highest)});
                if (step.step == document_->step) current.push_back(high.back());
            }
            before = seconds(step.end);
            if (step.step == document_->step && !current.isEmpty())
                current.push_back({before, current.back().value});
            high.push_back({before, 0});  // nothing between steps
            if (step.peak > highest->peak) highest = &step;
            ++drawn_;
        }
        xAxis->setRange(0, end);
        yAxis->setTicker(QSharedPointer<UnitTicker>::create(size.name, 3));
        yAxis->setRange(0, std::max(1e-9, size.value(highest->peak) * kStepsHeadroom));
        peak_->setText(tr("highest %1 · step %2").arg(size.text(highest->peak)).arg(highest->step));
        const double place = seconds(highest->begin + highest->end) / 2;
        // The label stays inside of the plot at either end.
        const double half = 80 * end / std::max(1, axisRect()->width());
        peak_->position->setCoords(
            std::clamp(place, std::min(half, end / 2), end - std::min(half, end / 2)),
            size.value(highest->peak) * 1.02);
        peak_->setVisible(true);
    }
    highest_->data()->set(high, true);
    current_->data()->set(current, true);
    replot(rpQueuedReplot);
}

std::int64_t StepsPlot::stepAt(const QPoint& position) const {
    if (!document_ || !axisRect()->rect().contains(position)) return -1;
    const double at = xAxis->pixelToCoord(position.x());
    for (const StepSummary& step : document_->overview)
        if (at >= seconds(step.begin) && at < seconds(step.end)) return step.step;
    return -1;
}

void StepsPlot::mousePressEvent(QMouseEvent* event) {
    pressed_ = event->pos();
    Plot::mousePressEvent(event);
}

void StepsPlot::mouseReleaseEvent(QMouseEvent* event) {
    Plot::mouseReleaseEvent(event);
    if ((event->pos() - pressed_).manhattanLength() > 3) return;
    if (const std::int64_t step = stepAt(event->pos()); step >= 0) emit stepClicked(step);
}

void StepsPlot::keyPressEvent(QKeyEvent* event) {
    const int by = event->key() == Qt::Key_Left ? -1 : event->key() == Qt::Key_Right ? 1 : 0;
    if (!document_ || by == 0 || event->modifiers() != Qt::NoModifier)
        return Plot::keyPressEvent(event);
    const std::vector<StepSummary>& steps = document_->overview;
    for (int at = 0, last = static_cast<int>(steps.size()) - 1; at <= last; ++at)
        if (steps[static_cast<std::size_t>(at)].step == document_->step && at + by >= 0 &&
            at + by <= last)
            return emit stepClicked(steps[static_cast<std::size_t>(at + by)].step);
}

void StepsPlot::mouseMoveEvent(QMouseEvent* event) {
    Plot::mouseMoveEvent(event);
    const std::int64_t at = stepAt(event->pos());
    if (event->buttons() != Qt::NoButton || at < 0) return QToolTip::hideText();
    for (const StepSummary& step : document_->overview)
        if (step.step == at)
            QToolTip::showText(event->globalPosition().toPoint(),
                               tr("step %1: %2 at most, %3 ms; a click opens it")
                                   .arg(step.step)
                                   .arg(document_->size.text(step.peak))
                                   .arg(milliseconds(step.end - step.begin), 0, 'f', 1),
                               this);
}

}  // namespace hw::viewer
