// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/plots/map_legend.h"

#include <QCoreApplication>

#include "viewer/plots/band_legend.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

QString tr(const char* text) {
    return QCoreApplication::translate("Map", text);
}

}  // namespace

std::vector<Legend::Item> mapLegend(const AddressMap& map, const Document& document) {
    BandSet shown;
    bool shades = false;
    for (const MapBlock& block : map.blocks)
        if (block.onlyEvents())
            shades = true;
        else
            shown.set(block.band);
    std::vector<Legend::Item> items = bandLegend(document.bands, shown);
    if (shades)
        items.push_back({theme().category(core::Category::Parameter), tr("a shade a size")});
    items.push_back({theme().muted, tr("blank: free"), false, true});
    return items;
}

}  // namespace hw::viewer
