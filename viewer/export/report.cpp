// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/export/report.h"
#include "core/base/file.h"

#include <QApplication>
#include <QTemporaryDir>
#include <QVBoxLayout>
#include <algorithm>

#include "viewer/export/picture.h"
#include "viewer/export/report_batch.h"
#include "viewer/export/report_map.h"
#include "viewer/models/live_set.h"
#include "viewer/models/rank_model.h"
#include "viewer/plots/batch_plot.h"
#include "viewer/plots/frontier_plot.h"
#include "viewer/plots/theme.h"
#include "viewer/plots/timeline_legend.h"
#include "viewer/plots/treemap_view.h"

namespace hw::viewer {
namespace {

constexpr int kReportWidth = 1000, kTimelineHeight = 430, kFrontierHeight = 360,
              kTreemapHeight = 380, kMapHeight = 230;

// The widget as SVG, without what comes before the element itself.
QByteArray svgOf(QWidget& widget, int height) {
    widget.setAttribute(Qt::WA_DontShowOnScreen);
    widget.setStyleSheet(QStringLiteral("background: %1").arg(theme().panel.name()));
    widget.resize(kReportWidth, height);
    widget.show();
    QApplication::processEvents(QEventLoop::ExcludeUserInputEvents);
    const QTemporaryDir folder;
    const QString path = folder.filePath(QStringLiteral("picture.svg"));
    if (!savePictureOf(widget, path.toStdString(), 1)) return {};
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly)) return {};
    const QByteArray svg = file.readAll();
    return svg.mid(std::max<qsizetype>(0, svg.indexOf("<svg")));
}

QByteArray timelinePicture(Workspace& workspace) {
    const DocumentPointer& document = workspace.document();
    const PlanPointer& plan = workspace.active().plan();
    const bool planned = isPlanned(plan);
    QWidget frame;
    auto* legend = new Legend;
    auto* plot = new TimelinePlot;
    plot->setDocument(document);
    plot->setPlan(planned ? plan : nullptr);
    if (planned) plot->setBudget(plan->budget);
    legend->setItems(timelineLegend(*plot, plan, document.get()));
    auto* column = new QVBoxLayout(&frame);
    column->setContentsMargins(0, 4, 14, 0);
    column->addWidget(legend);
    column->addWidget(plot, 1);
    return svgOf(frame, kTimelineHeight);
}

// Of the recorded peak and of the plan's, on one scale: equal areas are equal bytes.
QByteArray treemapPicture(const Workspace& workspace) {
    const DocumentPointer& document = workspace.document();
    const PlanPointer& plan = workspace.active().plan();
    QWidget frame;
    auto* row = new QHBoxLayout(&frame);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(0);
    const auto add = [&](const StepCurve& curve, const QString& name) {
        auto* map = new TreemapView;
        map->show(document, liveAt(*document, curve, curve.peakMoment), name);
        row->addWidget(map, std::max(1, qRound(1000 * ratio(curve.peak, document->peak()))));
    };
    add(document->curve, Workspace::tr("recorded peak"));
    if (isPlanned(plan) && !plan->curve.moments.empty()) add(plan->curve, plan->planner);
    return svgOf(frame, kTreemapHeight);
}

QByteArray frontierPicture(Workspace& workspace) {
    QWidget frame;
    auto* column = new QVBoxLayout(&frame);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(new FrontierPlot(workspace));
    return svgOf(frame, kFrontierHeight);
}

QByteArray batchPicture(const BatchResults& results, const QStringList& planners) {
    BatchPlots plots;
    plots.show(results, planners);
    return svgOf(plots, kFrontierHeight);
}

/// Where there are other recordings of the program.
core::Status addBatch(Workspace& workspace, Report& report) {
    if (workspace.loader().records().isEmpty()) return {};
    const auto results = studyBatches(workspace.loader().recordsWith(workspace.document()->path),
                                      workspace.selectedPlanners());
    if (!results) return results.error();
    const ThemeFor paper(/*light=*/true);
    ReportSection& section = report.sections.emplace_back(batchSection(*results));
    section.picture = batchPicture(*results, workspace.selectedPlanners());
    return {};
}

/// Where several were recorded.
core::Status addRanks(const Document& document, Report& report) {
    if (document.ranks < 2) return {};
    auto rows = loadRankRows(document.path);
    if (!rows) return rows.error();
    ReportSection section{Workspace::tr("The ranks side by side"), {}, {}, {}, {}};
    section.paragraphs << Workspace::tr(
        "The last step of each rank: its peak, how much lower that is than the highest, the time "
        "of its ops, and how long it waits for messages and collectives of the others, by op times "
        "alone. The rank that waits least decides how long the step takes.");
    RankModel model;
    model.setRows(std::move(*rows));
    section.tables.push_back(tableOf(model));
    report.sections.push_back(std::move(section));
    return {};
}

void addMaps(const Workspace& workspace, ReportSection& section) {
    const std::vector<ReportMap> maps = reportMaps(workspace);
    if (maps.empty()) return;
    ReportMapFigure figure(workspace.document(), maps);
    section.picture = svgOf(figure, 30 + kMapHeight * static_cast<int>(maps.size()));
    section.caption = Workspace::tr(
        "Each rectangle is a block of memory: as wide as its life, as high as its bytes, in the "
        "colour of its category. Blank is free.");
    section.tables.push_back(mapTable(*workspace.document(), maps));
}

void addPictures(Workspace& workspace, Report& report) {
    const ThemeFor paper(/*light=*/true);
    ReportSection& timeline = report.sections[kTimelineSection];
    timeline.picture = timelinePicture(workspace);
    timeline.caption = Workspace::tr(
        "Live memory while each op runs, stacked by category; below it the phases, layers and ops. "
        "A line, where there is one, is the chosen plan.");
    ReportSection& holders = report.sections[kHoldersSection];
    holders.picture = treemapPicture(workspace);
    holders.caption = Workspace::tr(
        "What is live at the peak: each rectangle is a tensor, as large as its bytes, within its "
        "layer, in the colour of its category.");
    addMaps(workspace, report.sections[kMapSection]);
    ReportSection& cost = report.sections[kFrontierSection];
    cost.picture = frontierPicture(workspace);
    cost.caption = Workspace::tr(
        "Extra step time of each planner over the budget. Dashed: the proven lower bound; shaded: "
        "budgets below which no order of the ops fits.");
}

}  // namespace

core::Status checkReportName(const std::string& file) {
    if (const QString kind = ending(file);
        kind == QLatin1String("html") || kind == QLatin1String("pdf"))
        return {};
    return core::Error{core::ErrorCode::Usage,
                       "cannot tell the format of " + (file.empty() ? "the report" : file),
                       "end the file name with .html or .pdf"};
}

core::Status saveReport(Workspace& workspace, const std::string& file) {
    if (core::Status name = checkReportName(file); !name) return name;
    const DocumentPointer& document = workspace.document();
    if (!document || !document->plannable)
        return core::Error{core::ErrorCode::Usage, "there is no recorded step to report on",
                           "record one with 'highwater record'"};
    Report report = reportContent(workspace);
    addPictures(workspace, report);
    if (core::Status added = addBatch(workspace, report); !added) return added;
    if (core::Status added = addRanks(*document, report); !added) return added;
    if (ending(file) == QLatin1String("pdf")) return saveReportPdf(report, file);
    return core::writeFileAtomically(file, reportHtml(report).toStdString());
}

}  // namespace hw::viewer
