// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "viewer/models/address_map.h"
#include "viewer/plots/legend.h"

namespace hw::viewer {

/// What the colours of an address map mean.
std::vector<Legend::Item> mapLegend(const AddressMap& map, const Document& document);

}  // namespace hw::viewer
