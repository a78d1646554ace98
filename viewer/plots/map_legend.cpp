// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/plots/map_legend.h"

#include <QCoreApplication>
#include <array>

#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

QString tr(const char* text) {
    return QCoreApplication::translate("Map", text);
}

// Kinds of ops, where blocks have their colours.
std::vector<Legend::Item> families() {
    return {{theme().family(OpFamily::Matrix), tr("made by matrix ops")},
            {theme().family(OpFamily::Normalization), tr("normalization")},
            {theme().family(OpFamily::Elementwise), tr("element-wise")},
            {theme().family(OpFamily::Reduction), tr("reduction")},
            {theme().family(OpFamily::Movement), tr("movement")},
            {theme().family(OpFamily::Other), tr("others")}};
}

}  // namespace

std::vector<Legend::Item> mapLegend(const AddressMap& map, const Document& document) {
    // Blocks whose category is not known have the colour of their op, or one to tell neighbours.
    const bool byOp = map.recorded && !document.plannable;
    std::array<bool, core::kCategoryCount> seen{};
    for (const MapBlock& block : map.blocks) seen[static_cast<std::size_t>(block.category)] = true;
    std::vector<Legend::Item> items;
    for (int c = 0; c < core::kCategoryCount; ++c) {
        const auto category = static_cast<core::Category>(c);
        if (!seen[static_cast<std::size_t>(c)] || (byOp && category == core::Category::Unknown))
            continue;
        items.push_back({theme().category(category), categoryText(category)});
    }
    if (byOp && document.graph.ops.empty())
        items.push_back({theme().category(core::Category::Parameter), tr("a shade a size")});
    else if (byOp)
        items = families();
    items.push_back({theme().muted, tr("blank: free"), false, true});
    return items;
}

}  // namespace hw::viewer
