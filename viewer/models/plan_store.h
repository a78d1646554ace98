// SPDX-License-Identifier: GPL-3.0-or-later
// The plans that are known of a document, and what can be said of a budget from them alone.
#pragma once

#include <QString>
#include <QStringList>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "viewer/models/document.h"

namespace hw::viewer {

/// All planners by name, the baseline first.
QStringList plannerNames();

/// What the known plans say of a budget.
struct Answer {
    enum class Kind { Fits, Nearest, Infeasible } kind = Kind::Nearest;
    PlanPointer plan;  // Fits: the best; Nearest: the one that needs least, above the budget;
                       // Infeasible: the search that proved it, none below the document's floor
};

/// One plan beside others; null while it is computed.
struct PlanRow {
    QString planner;
    PlanPointer plan;
};

/// Plans stored in the document, plans of files, computed ones, and quick ones: those that were
/// made in milliseconds while the budget moved. A plan fits every budget from its own peak upwards.
/// Questions that name a plan or a budget require a document, rows() apart.
class PlanStore {
public:
    /// Forgets every plan and begins with the document's own and these.
    void reset(DocumentPointer document, std::vector<PlanPointer> files);
    /// The cheapest plan of this planner that fits goes before those of others. Empty: no
    /// planner's.
    void prefer(const QString& planner) { preferred_ = planner; }

    /// Marks a plan as requested. False: it was requested before, or is known.
    bool request(const QString& planner, core::Bytes budget);
    void withdraw(const QString& planner, core::Bytes budget);
    void withdrawAll();  // requests; plans that are known stay
    bool awaits(core::Bytes budget) const;
    /// A computed plan, or an entry that says why there is none.
    void add(const PlanPointer& plan);
    /// Kept unless another needs less and is faster, too. An entry without a schedule may only
    /// raise quickInfeasibleUpTo().
    void addQuick(const PlanPointer& plan);
    /// Within this budget, quick attempts find nothing.
    core::Bytes quickInfeasibleUpTo() const { return quickInfeasibleUpTo_; }
    /// Null: not computed, or not yet.
    PlanPointer computed(const QString& planner, core::Bytes budget) const;

    /// Ratios of the baseline peak at which the frontier of every planner is drawn: tenths, or nine
    /// even steps down to the floor where tenths would leave too few.
    std::vector<double> frontierRatios() const;
    /// Every computed plan of a planner, by descending budget.
    std::vector<PlanPointer> frontier(const QString& planner) const;
    /// Plans at the budget by planner (null while they are computed); then plan files and stored
    /// plans of other budgets, the largest first.
    std::vector<PlanRow> rows(core::Bytes budget) const;

    /// The cheapest plan that fits, whatever budget it was made for; null: none does.
    PlanPointer cheapest(core::Bytes budget) const;
    Answer answer(core::Bytes budget) const;
    /// What no plan of the captured ops within this budget can be faster than: the best that any
    /// planner proved for it or for a larger one.
    std::optional<core::Nanoseconds> provenBound(core::Bytes budget) const;
    /// How far it may be from the fastest plan at its budget, as a share of the baseline's time.
    std::optional<double> gap(const PlanPointer& plan) const;
    /// The cheapest known plan within the budget of this one, where it costs so much less that a
    /// reader has to be told: 5 points of step time and half of the extra; otherwise null.
    PlanPointer farCheaper(const PlanPointer& plan) const;
    /// How long planning took: the plan's own figure, or that of the same plan computed here.
    std::optional<double> planningSeconds(const PlanPointer& plan) const;

private:
    using Key = std::pair<QString, std::int64_t>;  // planner, budget in bytes

    std::vector<PlanPointer> given() const;  // stored, and of files
    std::vector<PlanPointer> known() const;  // computed, and given

    DocumentPointer document_;
    std::vector<PlanPointer> files_;
    std::map<Key, PlanPointer> computed_;  // null: requested
    std::vector<PlanPointer> quick_;       // none better than another in both ways
    core::Bytes quickInfeasibleUpTo_;
    QString preferred_;
};

}  // namespace hw::viewer
