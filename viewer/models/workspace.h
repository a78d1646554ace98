// SPDX-License-Identifier: GPL-3.0-or-later
// What every view of the window shares: the document, the budget, the plans, the selection.
#pragma once

#include <QObject>
#include <QStringList>
#include <memory>
#include <optional>

#include "viewer/models/active_plan.h"
#include "viewer/models/document_loader.h"
#include "viewer/models/plan_store.h"
#include "viewer/models/selection_model.h"
#include "viewer/models/task_queue.h"

namespace hw::viewer {

/// What is looked at, as far as all views share it.
struct WorkspaceState {
    core::Bytes budget;
    PlanPointer chosen;
    Selection selection;
    std::optional<TimeRange> range;
    friend bool operator==(const WorkspaceState&, const WorkspaceState&) = default;
};

/// The document with its parts, the budget, and the planners that follow it.
class Workspace : public QObject {
    Q_OBJECT
public:
    explicit Workspace(QObject* parent = nullptr);

    /// The budget of a fresh document, or more where nothing could fit into that.
    static constexpr double kDefaultRatio = 0.6;
    /// A point of the frontier takes a search at most so long, a plan at the budget.
    static constexpr double kFrontierSeconds = 2, kBudgetSeconds = 5;

    DocumentLoader& loader() { return loader_; }
    SelectionModel& selection() { return selection_; }
    const PlanStore& plans() const { return plans_; }
    /// The chosen plan, otherwise the cheapest known that fits the budget, whatever budget it was
    /// made for.
    const ActivePlan& active() const { return active_; }

    const DocumentPointer& document() const { return document_; }
    /// Shows a step that came from elsewhere.
    void show(DocumentPointer document) { adopt({std::move(document), {}}); }
    /// Another step of the open session, with a frontier where there was one.
    void openStep(std::int64_t step);
    /// The memory of another device of the open trace, by its label.
    void openDevice(const std::string& device);
    /// Loads the open session again, because a run of the active plan was added to it.
    void reload();

    core::Bytes budget() const { return budget_; }
    double budgetRatio() const;
    /// Sets the budget and asks the selected planners for a plan there; results arrive later.
    void setBudget(core::Bytes budget);
    void setBudgetRatio(double ratio);
    /// Shows, while the budget is still on its way to this share of the peak, the cheapest plan
    /// that is known already and fits there, and has others made in the background: a few that ask
    /// for no budget at once, then one for this place. What was asked of an earlier place is
    /// cancelled.
    void previewBudget(double ratio);
    /// Sets the budget and asks for nothing; for pictures.
    void placeBudget(double ratio);

    /// The planners that follow the budget and have a curve; a few until others are chosen.
    const QStringList& selectedPlanners() const { return selected_; }
    /// Asks those that are new for what the others have. Names in any order; unknown ones are left
    /// out.
    void selectPlanners(const QStringList& names);
    /// Asks every planner for a plan at the budget.
    void planEvery();
    /// Computes the plans of the selected planners at the budget before it returns.
    core::Status planNow();
    /// Asks for the frontier of the selected planners, the coarse points first.
    void requestFrontier();
    core::Status frontierNow();
    /// Draws this plan over the recorded curve, and keeps to its planner as the budget moves.
    void choose(const PlanPointer& plan);

    /// What a training holds that carries out a plan of this step, on that plan's axis, until
    /// another document is shown; null: none does.
    const std::shared_ptr<const StepCurve>& live() const { return live_; }
    void showLive(std::shared_ptr<const StepCurve> curve);

    WorkspaceState state() const;
    /// Back to one of this document's.
    void setState(const WorkspaceState& state);
    void cancel();
    bool busy() const { return pending() > 0; }

signals:
    void documentChanged();
    void budgetChanged();
    void plansChanged();    // frontier or rows
    void answersChanged();  // quick plans
    void plannersChanged();
    void liveChanged();
    void busyChanged(int pending, const QString& what);
    void failed(const QString& what, const QString& hint);  // in planning

private:
    void take(const LoadedDocument& loaded);
    void adopt(const LoadedDocument& loaded);
    void reopen(std::int64_t step, const QString& planner);
    core::Bytes budgetAt(double ratio) const;
    int pending() const { return loader_.pending() + searches_.pending() + quick_.pending(); }

    bool mayPlan(core::Bytes budget) const;
    void request(const QString& planner, core::Bytes budget, bool urgent);
    void askAtBudget(const QStringList& planners);
    void cancelPlans();
    core::Status computeNow(const QString& planner, core::Bytes budget, double seconds);
    void requestQuickPlans(core::Bytes budget);
    void requestOwnPlans();
    void requestCoarsePlans();
    void keepQuickPlan(const PlanPointer& plan);

    void keepTo(const PlanPointer& plan);
    void updateActive();
    void showFitting(core::Bytes budget);

    DocumentPointer document_;
    PlanStore plans_;
    SelectionModel selection_;
    ActivePlan active_;
    DocumentLoader loader_;
    core::Bytes budget_;
    std::optional<core::Bytes> previewed_;  // while the budget is being moved
    std::optional<core::Bytes> quickBudget_;
    bool coarseRequested_ = false, frontierWanted_ = false;
    QStringList selected_;
    PlanPointer chosen_;
    std::shared_ptr<const StepCurve> live_;
    QString working_;
    // Last: they stop before what their tasks deliver into goes away. Nothing quick ever waits for
    // a search.
    TaskQueue searches_{TaskQueue::Priority::Background}, quick_{TaskQueue::Priority::Background},
        coarse_{TaskQueue::Priority::Background}, attempts_;
};

}  // namespace hw::viewer
