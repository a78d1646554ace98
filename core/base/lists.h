// SPDX-License-Identifier: MIT
#pragma once

#include <vector>

namespace hw::core {

/// Of what comes in order, each once.
template <class Item>
void pushUnlessLast(std::vector<Item>& list, Item item) {
    if (list.empty() || list.back() != item) list.push_back(item);
}

}  // namespace hw::core
