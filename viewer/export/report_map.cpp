// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/export/report_map.h"

#include <QVBoxLayout>
#include <algorithm>

#include "viewer/export/report_text.h"
#include "viewer/plots/map_legend.h"

namespace hw::viewer {
namespace {

using reports::tr;

}  // namespace

std::vector<ReportMap> reportMaps(const Workspace& workspace) {
    const Document& document = *workspace.document();
    std::vector<ReportMap> maps;
    const auto add = [&](const PlanPointer& plan, AddressMap map) {
        if (!map.blocks.empty())
            maps.push_back({plan, std::make_shared<const AddressMap>(std::move(map))});
        return !maps.empty();
    };
    if (document.curve.moments.empty()) return maps;
    if (!add(nullptr, recordedMap(document))) add(nullptr, packedMap(document, nullptr));
    if (const PlanPointer& plan = workspace.active().plan(); isPlanned(plan))
        add(plan, packedMap(document, plan.get()));
    return maps;
}

ReportTable mapTable(const Document& document, const std::vector<ReportMap>& maps) {
    ReportTable table{{QString(), tr("addresses taken"), tr("most live"), tr("free at the peak"),
                       tr("longest hole"), tr("no layout below")},
                      {}};
    for (const ReportMap& each : maps) {
        const AddressMap& map = *each.map;
        const QString name = each.plan      ? tr("arena of the plan")
                             : map.recorded ? tr("as recorded")
                                            : tr("recorded order, packed");
        table.rows.push_back(
            {name, document.size.text(map.span), document.size.text(map.livePeak),
             percentText(map.wasted(), 1), document.size.text(map.hole),
             map.recorded ? QStringLiteral("—") : document.size.text(map.lowerBound)});
    }
    return table;
}

ReportMapFigure::ReportMapFigure(const DocumentPointer& document,
                                 const std::vector<ReportMap>& maps) {
    auto* legend = new Legend;
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 4, 14, 0);
    column->addWidget(legend);
    std::vector<Legend::Item> items;
    for (const ReportMap& each : maps) {
        auto* plot = new MapPlot;
        plot->show(document, each.plan, each.map);
        column->addWidget(plot, 1);
        for (const Legend::Item& item : mapLegend(*each.map, *document))
            if (std::none_of(items.begin(), items.end(),
                             [&](const auto& other) { return other.name == item.name; }))
                items.push_back(item);
    }
    // What is blank comes last.
    std::stable_partition(items.begin(), items.end(),
                          [](const auto& each) { return !each.hollow; });
    legend->setItems(std::move(items));
}

}  // namespace hw::viewer
