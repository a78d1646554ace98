// SPDX-License-Identifier: GPL-3.0-or-later
// All that is known of what is selected, in words: an op, a tensor, a layer, or else the step.
#pragma once

#include <QString>
#include <optional>
#include <vector>

#include "viewer/models/plan_reasons.h"
#include "viewer/models/selection.h"

namespace hw::viewer {

struct Fact {
    QString name, value;
    Target target;  // what the value speaks of, where that can be selected
};

struct FactGroup {
    QString title;
    std::vector<Fact> facts;
};

/// Its first group says what it is. `range`: a stretch of time that is measured, before all else.
/// What is not known is left out. Of long lists the first entries stand, and how many there are.
std::vector<FactGroup> inspect(const Document& document, const Selection& selection,
                               const InspectedPlan& plan, const std::optional<TimeRange>& range);

/// One fact a line, under their groups' titles.
QString factsAsText(const std::vector<FactGroup>& groups);

/// Entries of a list that are told one by one.
inline constexpr int kToldOfList = 40;

}  // namespace hw::viewer
