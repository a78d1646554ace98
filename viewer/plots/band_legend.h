// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <bitset>
#include <vector>

#include "viewer/models/bands.h"
#include "viewer/plots/legend.h"

namespace hw::viewer {

using BandSet = std::bitset<kBandCount>;

/// What the colours of these bands mean.
std::vector<Legend::Item> bandLegend(const Bands& bands, const BandSet& shown);

}  // namespace hw::viewer
