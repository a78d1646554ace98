// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/export/report_content.h"

#include <QDateTime>
#include <algorithm>
#include <map>

#include "core/import/import.h"
#include "viewer/export/report_text.h"
#include "viewer/models/compare_model.h"
#include "viewer/models/layer_model.h"

namespace hw::viewer {
namespace {

constexpr std::size_t kLayers = 12, kTensors = 10, kRecomputed = 10;
const QString kNothing = QStringLiteral("—");

using reports::tr;

struct Facts {
    QString command, host, framework, device;
    std::vector<core::GapRow> gaps;
};

Facts factsOf(const Document& document) {
    Facts facts;
    auto session = core::openAny(document.path);
    if (!session) return facts;
    if (auto gaps = session->gaps()) facts.gaps = std::move(*gaps);
    // An imported log has neither; the report leaves them out.
    if (const auto processes = session->processes(); processes && !processes->empty()) {
        const core::ProcessRow& process = processes->front();
        facts.command = toQString(process.command);
        facts.host = toQString(process.host);
        facts.framework =
            (toQString(process.framework) + QLatin1Char(' ') + toQString(process.frameworkVersion))
                .trimmed();
    }
    if (const auto devices = session->devices(); devices && !devices->empty()) {
        const core::DeviceRow& device = devices->front();
        facts.device = toQString(device.name.empty() ? device.kind : device.name);
    }
    return facts;
}

QString layerName(const Document& document, core::LayerIndex layer) {
    const QString path = layer == core::kNone ? QString() : layerText(document.graph, layer);
    return path.isEmpty() ? tr("(no layer)") : path;
}

QString share(core::Bytes part, core::Bytes whole) {
    return percentText(ratio(part, whole), 1);
}

std::vector<std::pair<Band, core::Bytes>> bandsAtPeak(const Document& document) {
    std::vector<std::pair<Band, core::Bytes>> found;
    if (document.curve.moments.empty()) return found;
    const Moment& peak = document.curve.moments[document.curve.peakMoment];
    for (Band band = 0; band < kBandCount; ++band)
        if (peak.byBand[band] > core::Bytes(0)) found.emplace_back(band, peak.byBand[band]);
    std::sort(found.begin(), found.end(),
              [](const auto& a, const auto& b) { return a.second > b.second; });
    return found;
}

QString planSentence(const Workspace& workspace, const PlanPointer& chosen) {
    const Document& document = *workspace.document();
    const PlanEntry& plan = *chosen;
    QString text =
        tr("Under a budget of %1 (%2 of the peak), %3 keeps it within %4 for %5 of step time: it "
           "recomputes %6 of %7 ops.")
            .arg(document.size.text(plan.budget), percentText(ratio(plan.budget, document.peak())),
                 plan.planner, document.size.text(plan.peak), overheadText(plan.overhead))
            .arg(plan.recomputedOps)
            .arg(document.graph.ops.size());
    if (const std::optional<double> gap = workspace.plans().gap(chosen))
        text += QLatin1Char(' ') +
                tr("No plan at this budget can be more than %1 points of step time cheaper.")
                    .arg(QString::number(*gap * 100, 'f', 2));
    if (const PlanPointer better = workspace.plans().farCheaper(chosen))
        text += QLatin1Char(' ') +
                tr("It is not the one to take: %1 keeps the step within %2 for %3, far less.")
                    .arg(better->planner, document.size.text(better->peak),
                         overheadText(better->overhead));
    if (plan.measuredPeak)
        text +=
            QLatin1Char(' ') +
            tr("It was run: the measured peak is %1, %2.")
                .arg(document.size.text(*plan.measuredPeak),
                     plan.outputsDifferent == 0
                         ? tr("and all %1 compared results are identical").arg(plan.outputsCompared)
                         : tr("but %1 of %2 compared results differ")
                               .arg(plan.outputsDifferent)
                               .arg(plan.outputsCompared));
    return text;
}

QString leadOf(const Workspace& workspace) {
    const Document& document = *workspace.document();
    const PlanPointer& plan = workspace.active().plan();
    QString text = tr("The step peaks at %1").arg(document.size.text(document.peak()));
    if (const QString place = document.peakPlace(); !place.isEmpty())
        text += tr(" in %1").arg(place);
    if (!document.curve.moments.empty())
        text +=
            tr(", %1 into a step of %2")
                .arg(document.time.text(document.curve.moments[document.curve.peakMoment].begin),
                     document.time.text(document.judged.time));
    text += QLatin1Char('.');
    if (const auto held = bandsAtPeak(document); !held.empty()) {
        const QString most = document.bands.byLine()
                                 ? tr("Most of it was allocated by %1: %2, %3 of the peak.")
                                 : tr("Most of it is %1: %2, %3 of the peak.");
        text += QLatin1Char(' ') + most.arg(document.bands.name(held.front().first),
                                            document.size.text(held.front().second),
                                            share(held.front().second, document.peak()));
    }
    if (isPlanned(plan)) text += QLatin1Char(' ') + planSentence(workspace, plan);
    return text;
}

ReportSection timelineSection() {
    return {tr("Memory over the step"), {}, {}, {}, {}};
}

ReportTable bandTable(const Document& document) {
    ReportTable table{{document.bands.byLine() ? tr("allocated by") : tr("category"),
                       tr("at the peak"), tr("share")},
                      {}};
    for (const auto& [band, bytes] : bandsAtPeak(document))
        table.rows.push_back(
            {document.bands.name(band), document.size.text(bytes), share(bytes, document.peak())});
    table.rows.push_back({tr("in all"), document.size.text(document.peak()), percentText(1, 1)});
    table.emphasized = static_cast<int>(table.rows.size()) - 1;
    return table;
}

/// Layers without their parts, the largest at the peak first.
std::vector<LayerShare> ownShares(const Document& document) {
    const LayerTree tree = layerTree(document);
    std::vector<LayerShare> shares = tree.shares;
    for (LayerShare& own : shares)
        for (const int part : own.parts) {
            const LayerShare& all = tree.shares[static_cast<std::size_t>(part)];
            own.atPeak -= all.atPeak;
            own.forward -= all.forward;
            own.backward -= all.backward;
            own.other -= all.other;
        }
    std::stable_sort(shares.begin(), shares.end(),
                     [](const LayerShare& a, const LayerShare& b) { return a.atPeak > b.atPeak; });
    return shares;
}

ReportTable layerTable(const Document& document) {
    ReportTable table{{tr("layer"), tr("at the peak"), tr("share"), tr("op time")}, {}};
    const std::vector<LayerShare> shares = ownShares(document);
    core::Bytes others;
    std::size_t left = 0;
    for (std::size_t i = 0; i < shares.size(); ++i) {
        if (i >= kLayers) {
            others += shares[i].atPeak;
            left += shares[i].atPeak > core::Bytes(0) ? 1 : 0;
        } else if (shares[i].atPeak > core::Bytes(0)) {
            table.rows.push_back(
                {layerName(document, shares[i].layer), document.size.text(shares[i].atPeak),
                 share(shares[i].atPeak, document.peak()),
                 document.time.text(shares[i].forward + shares[i].backward + shares[i].other)});
        }
    }
    if (left > 0)
        table.rows.push_back({tr("%1 more layers").arg(left), document.size.text(others),
                              share(others, document.peak()), QString()});
    return table;
}

ReportTable tensorTable(const Document& document) {
    ReportTable table{{tr("largest tensors"), tr("made by"),
                       document.bands.byLine() ? tr("allocated by") : tr("category"), tr("size")},
                      {},
                      3};
    const core::TrainingGraph& graph = document.graph;
    if (document.curve.moments.empty()) return table;
    for (const core::StorageIndex s :
         largestResident(graph, document.curve, document.curve.peakMoment, kTensors)) {
        const core::Storage& storage = graph.storages[s];
        table.rows.push_back({layerName(document, storage.layer),
                              storage.isConstant() ? tr("before the step")
                                                   : shortOpName(graph.ops[storage.creator].name),
                              document.kindOf(s), document.size.text(storage.bytes)});
    }
    return table;
}

ReportSection holdersSection(const Document& document) {
    ReportSection section{tr("Who holds the peak"), {}, {}, {}, {}};
    section.tables.push_back(bandTable(document));
    if (!document.graph.layers.empty()) section.tables.push_back(layerTable(document));
    section.tables.push_back(tensorTable(document));
    return section;
}

// Its table comes with its picture: both are of the same maps.
ReportSection mapSection() {
    return {
        tr("Where it lies"),
        {tr("Tensors of different lives leave holes between them, so memory takes more addresses "
            "than bytes are live. A plan is run in an arena that is packed before it starts.")},
        {},
        {},
        {}};
}

// The table of Compare, as the window shows it, with the plans that were found.
ReportTable planTable(Workspace& workspace) {
    const CompareModel model(workspace);
    const ReportTable all = tableOf(model);
    ReportTable table{all.header, {}};
    for (int row = 0; row < model.rowCount(); ++row) {
        if (!model.planAt(row)) continue;
        if (model.index(row, 0).data(CompareModel::kActiveRole).toBool())
            table.emphasized = static_cast<int>(table.rows.size());
        table.rows.push_back(all.rows[static_cast<std::size_t>(row)]);
    }
    return table;
}

ReportSection costSection(Workspace& workspace) {
    const Document& document = *workspace.document();
    ReportSection section{tr("What less memory costs"), {}, {}, {}, {}};
    section.paragraphs
        << tr("Every planner below was asked for budgets down to %1, under which no order of these "
              "ops fits. Peaks and times are those of one judge, which replays the plan on the "
              "recorded graph.")
               .arg(document.size.text(document.floor));
    if (ReportTable plans = planTable(workspace); !plans.rows.empty())
        section.tables.push_back(std::move(plans));
    return section;
}

ReportTable recomputedTable(const Document& document, const PlanEntry& plan) {
    struct Sum {
        std::int64_t ops = 0;
        core::Nanoseconds time;
    };
    std::map<core::LayerIndex, Sum> sums;
    for (const core::Action& action : plan.schedule) {
        if (!action.recomputes()) continue;
        const core::Op& op = document.graph.ops[action.target];
        Sum& sum = sums[op.layer];
        ++sum.ops;
        sum.time += op.time;
    }
    std::vector<std::pair<core::LayerIndex, Sum>> sorted(sums.begin(), sums.end());
    std::sort(sorted.begin(), sorted.end(),
              [](const auto& a, const auto& b) { return a.second.time > b.second.time; });
    ReportTable table{{tr("recomputed in"), tr("ops"), tr("time"), tr("of the step")}, {}};
    const std::size_t shown = std::min(sorted.size(), kRecomputed);
    Sum rest;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
        const auto& [layer, sum] = sorted[i];
        if (i < shown) {
            table.rows.push_back({layerName(document, layer), QString::number(sum.ops),
                                  document.time.text(sum.time),
                                  percentText(ratio(sum.time, document.judged.time), 2)});
        } else {
            rest.ops += sum.ops;
            rest.time += sum.time;
        }
    }
    if (shown < sorted.size())
        table.rows.push_back({tr("%1 more layers").arg(sorted.size() - shown),
                              QString::number(rest.ops), document.time.text(rest.time),
                              percentText(ratio(rest.time, document.judged.time), 2)});
    return table;
}

ReportSection planSection(const Workspace& workspace, const PlanPointer& chosen) {
    const Document& document = *workspace.document();
    const PlanEntry& plan = *chosen;
    ReportSection section{
        tr("The chosen plan: %1").arg(plan.planner), {planSentence(workspace, chosen)}, {}, {}, {}};
    ReportTable figures{{QString(), tr("recorded"), tr("plan, predicted"), tr("plan, measured")},
                        {}};
    figures.rows.push_back(
        {tr("peak"), document.size.text(document.peak()), document.size.text(plan.peak),
         plan.measuredPeak ? document.size.text(*plan.measuredPeak) : tr("not run")});
    figures.rows.push_back({tr("step time (sum of ops)"), document.time.text(document.judged.time),
                            document.time.text(plan.time), kNothing});
    figures.rows.push_back(
        {tr("extra time"), kNothing, overheadText(plan.overhead),
         plan.measuredOverhead ? overheadText(*plan.measuredOverhead) : tr("not run")});
    figures.rows.push_back(
        {tr("ops run"), QString::number(document.graph.ops.size()),
         QString::number(static_cast<qint64>(document.graph.ops.size()) + plan.recomputedOps),
         kNothing});
    section.tables.push_back(std::move(figures));
    if (plan.recomputedOps > 0) section.tables.push_back(recomputedTable(document, plan));
    return section;
}

ReportSection notesSection(const Document& document, const Facts& facts) {
    ReportSection section{tr("How these figures came about"), {}, {}, {}, {}};
    section.paragraphs << tr("Op times and workspaces are as %1. Workspace is memory that an op "
                             "takes only while it runs. Overhead is step time over that of the "
                             "recorded order; the gap is the distance to a proven lower bound.")
                              .arg(toQString(core::costSetName(document.graph.costs)));
    if (facts.gaps.empty()) {
        section.paragraphs << tr("The recording has no gaps.");
        return section;
    }
    ReportTable gaps{{tr("not recorded"), tr("why"), tr("step")}, {}, 2};
    for (const core::GapRow& gap : facts.gaps)
        gaps.rows.push_back({toQString(gap.what), toQString(gap.why),
                             gap.step ? QString::number(*gap.step) : kNothing});
    section.tables.push_back(std::move(gaps));
    return section;
}

// The class of the module that holds all others.
QString modelOf(const Document& document) {
    for (const core::Layer& layer : document.graph.layers)
        if (layer.path == "(root)") return toQString(layer.type);
    return {};
}

QString subtitleOf(const Document& document, const Facts& facts) {
    QStringList parts;
    parts << (document.steps > 1
                  ? tr("step %1 of %2 recorded").arg(document.step).arg(document.steps)
                  : tr("step %1").arg(document.step));
    parts << tr("%1 ops, %2 storages")
                 .arg(document.graph.ops.size())
                 .arg(document.graph.storages.size());
    for (const QString& fact : {modelOf(document), facts.framework, facts.device, facts.host})
        if (!fact.isEmpty()) parts << fact;
    return parts.join(QStringLiteral(" · ")) +
           (facts.command.isEmpty() ? QString() : QLatin1Char('\n') + facts.command);
}

}  // namespace

ReportTable tableOf(const QAbstractItemModel& model) {
    ReportTable table;
    for (int column = 0; column < model.columnCount(); ++column)
        table.header << model.headerData(column, Qt::Horizontal, Qt::DisplayRole).toString();
    for (int row = 0; row < model.rowCount(); ++row) {
        QStringList& cells = table.rows.emplace_back();
        for (int column = 0; column < model.columnCount(); ++column)
            cells << model.index(row, column).data().toString();
    }
    return table;
}

Report reportContent(Workspace& workspace) {
    const Document& document = *workspace.document();
    const PlanPointer& plan = workspace.active().plan();
    const Facts facts = factsOf(document);
    Report report;
    report.title = tr("Memory of a training step: %1").arg(document.name);
    report.subtitle = subtitleOf(document, facts);
    report.lead = leadOf(workspace);
    report.figures.push_back({tr("peak"), document.size.text(document.peak())});
    report.figures.push_back({tr("step time"), document.time.text(document.judged.time)});
    if (isPlanned(plan)) {
        report.figures.push_back({tr("peak under the plan"), document.size.text(plan->peak)});
        report.figures.push_back({tr("cost in step time"), overheadText(plan->overhead)});
    }
    report.sections.push_back(timelineSection());
    report.sections.push_back(holdersSection(document));
    report.sections.push_back(mapSection());
    report.sections.push_back(costSection(workspace));
    if (isPlanned(plan)) report.sections.push_back(planSection(workspace, plan));
    report.sections.push_back(notesSection(document, facts));
    report.footer =
        tr("Made by Highwater from %1 on %2")
            .arg(document.name,
                 QDateTime::currentDateTime().toString(QStringLiteral("d MMM yyyy, hh:mm")));
    return report;
}

}  // namespace hw::viewer
