// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/plots/band_legend.h"

#include "viewer/plots/theme.h"

namespace hw::viewer {

std::vector<Legend::Item> bandLegend(const Bands& bands, const BandSet& shown) {
    std::vector<Legend::Item> items;
    const auto add = [&](Band band) {
        if (shown[band]) items.push_back({theme().band(bands, band), bands.name(band)});
    };
    for (Band band = 0; band < kUnknownBand; ++band) add(band);
    add(kOtherLines);
    add(kUnknownBand);
    return items;
}

}  // namespace hw::viewer
