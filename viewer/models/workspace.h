// SPDX-License-Identifier: GPL-3.0-or-later
// What every view of the window shares: the document, the budget, the plans, the selection.
#pragma once

#include <QObject>
#include <QStringList>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "viewer/models/document.h"
#include "viewer/models/plan_reasons.h"
#include "viewer/models/selection.h"
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

/// What can be said at once of a budget, from the plans that are known.
struct Answer {
    enum class Kind { Fits, Nearest, Infeasible } kind = Kind::Nearest;
    PlanPointer plan;  // Fits: the best; Nearest: the one that needs least, above the budget;
                       // Infeasible: the search that proved it, none below the document's floor
};

class Workspace : public QObject {
    Q_OBJECT
public:
    explicit Workspace(QObject* parent = nullptr);

    /// Ratios of the baseline peak at which the frontier of every planner is drawn: tenths, or nine
    /// even steps down to the floor where tenths would leave too few.
    std::vector<double> frontierRatios() const;
    /// The budget of a fresh document, or more where nothing could fit into that.
    static constexpr double kDefaultRatio = 0.6;

    // Loading. open() works in the background; openNow() does it all at once, for pictures.
    void open(const QString& path, const QStringList& planFiles = {},
              std::optional<std::int64_t> step = std::nullopt);
    /// Shows a step that came from elsewhere.
    void show(DocumentPointer document) { adopt({std::move(document), {}}); }
    core::Status openNow(const std::string& path, const std::vector<std::string>& planFiles,
                         std::optional<std::int64_t> step);

    /// Shows the last complete step of a session that is being recorded; called again after every
    /// step. The budget keeps its share of the peak, and nothing is planned until open().
    void follow(const QString& path);
    bool following() const { return following_; }
    /// Another step of the open session, with a frontier where there was one.
    void openStep(std::int64_t step);
    /// Loads the open session again, because a run of the active plan was added to it.
    void reload();

    /// Other recordings of the program that is open, with other batches.
    const QStringList& records() const { return records_; }
    void setRecords(const QStringList& files);
    /// `path` and those.
    std::vector<std::string> recordsWith(const std::string& path) const;
    /// The last step of the first of the records, shown beside the document; null: there is none,
    /// or it is not loaded yet.
    const DocumentPointer& other() const { return other_; }
    /// Loads it before it returns; for pictures.
    core::Status loadOtherNow();

    const DocumentPointer& document() const { return document_; }
    core::Bytes budget() const { return budget_; }
    double budgetRatio() const;
    static QStringList planners();  // by name, the baseline first

    /// The planners that follow the budget and have a curve; a few until others are chosen.
    const QStringList& selectedPlanners() const { return selected_; }
    /// Asks those that are new for what the others have. Names in any order; unknown ones are left
    /// out.
    void selectPlanners(const QStringList& names);

    /// Sets the budget and asks the selected planners for a plan there; results arrive later.
    void setBudget(core::Bytes budget);
    void setBudgetRatio(double ratio);
    /// Shows, while the budget is still on its way to this share of the peak, the cheapest plan
    /// that is known already and fits there, and has others made in the background: a few that ask
    /// for no budget at once, then one for this place. What was asked of an earlier place is
    /// cancelled.
    void previewBudget(double ratio);
    /// Without delay. Requires a document.
    Answer answer(core::Bytes budget) const;
    /// Sets the budget and asks for nothing; for pictures.
    void placeBudget(double ratio);
    /// Asks every planner for a plan at the budget.
    void planEvery();
    /// Computes the plans of the selected planners at the budget before it returns.
    core::Status planNow();
    /// Asks for the frontier of the selected planners, the coarse points first. A point takes a
    /// search at most kFrontierSeconds, a plan at the budget at most kBudgetSeconds.
    void requestFrontier();
    static constexpr double kFrontierSeconds = 2, kBudgetSeconds = 5;
    core::Status frontierNow();

    /// Draws this plan over the recorded curve, and keeps to its planner as the budget moves.
    void choose(const PlanPointer& plan);
    /// The plan over the recorded curve: the chosen one, otherwise the cheapest known that fits the
    /// budget, whatever budget it was made for; never the baseline itself. May be null.
    const PlanPointer& activePlan() const { return active_; }
    /// What it does in another way than the recorded step; null without one. Of a large step this
    /// is found in the background, and null until activeChangesFound().
    const PlanChanges& activeChanges();
    InspectedPlan inspectedPlan();  // the active one
    /// The same as activeChanges(), before it returns; for pictures.
    const PlanChanges& activeChangesNow();

    /// Everything known about a planner, by descending budget.
    std::vector<PlanPointer> frontier(const QString& planner) const;
    /// Plans at the budget by planner (null while they are computed); then plan files and stored
    /// plans of other budgets, the largest first.
    struct Row {
        QString planner;
        PlanPointer plan;
    };
    std::vector<Row> rows() const;

    /// What no plan of the captured ops within this budget can be faster than: the best that any
    /// planner proved for it or for a larger one.
    std::optional<core::Nanoseconds> provenBound(core::Bytes budget) const;
    /// How far it may be from the fastest plan at its budget, as a share of the baseline's time.
    std::optional<double> gap(const PlanPointer& plan) const;
    /// The cheapest known plan within the budget of this one, where it costs so much less that a
    /// reader has to be told: 5 points of step time and half of the extra; otherwise null.
    PlanPointer farCheaper(const PlanPointer& plan) const;
    /// How long planning took: the plan's own figure, or that of the same plan made here.
    std::optional<double> planningSeconds(const PlanPointer& plan) const;

    /// What a training holds that carries out a plan of this step, on that plan's axis, until
    /// another document is shown; null: none does.
    const std::shared_ptr<const StepCurve>& live() const { return live_; }
    void showLive(std::shared_ptr<const StepCurve> curve);

    const Selection& selection() const { return selection_; }
    core::OpIndex selectedOp() const { return selection_.op; }
    void selectOp(core::OpIndex op);
    void selectStorage(core::StorageIndex storage);
    void selectLayer(core::LayerIndex layer);
    void select(const Target& target);
    /// The stretch of time that is looked at; none: the whole step.
    const std::optional<TimeRange>& range() const { return range_; }
    void selectRange(std::optional<TimeRange> range);
    void stepOp(int by);
    /// The range from the op where it began to the one that is so many further.
    void stretchRange(int by);
    WorkspaceState state() const { return {budget_, chosen_, selection_, range_}; }
    /// Back to one of this document's.
    void setState(const WorkspaceState& state);
    void cancel();
    bool busy() const { return queue_.pending() + searches_.pending() + quick_.pending() > 0; }

signals:
    void documentChanged();
    void budgetChanged();
    void plansChanged();  // frontier or rows
    void answersChanged();
    void plannersChanged();
    void recordsChanged();
    void otherChanged();
    void activePlanChanged();
    void activeChangesFound();
    void liveChanged();
    void selectionChanged();
    void rangeChanged();
    void busyChanged(int pending, const QString& what);
    void failed(const QString& what, const QString& hint);

private:
    using Key = std::pair<QString, std::int64_t>;  // planner, budget in bytes
    struct Loaded {
        DocumentPointer document;
        std::vector<PlanPointer> files;
    };
    static core::Result<Loaded> load(const std::string& path,
                                     const std::vector<std::string>& planFiles,
                                     std::optional<std::int64_t> step);
    void adopt(Loaded loaded);
    void submitFollow(const QString& path);
    void reopen(std::int64_t step, const QString& planner);
    void request(const QString& planner, core::Bytes budget, bool urgent);
    void askAtBudget(const QStringList& planners);
    void cancelPlans();
    void store(const Key& key, PlanPointer plan);
    void requestQuickPlans(core::Bytes budget);
    void requestCoarsePlans();
    void keepQuickPlan(const PlanPointer& plan);
    core::Status computeNow(const QString& planner, core::Bytes budget, double seconds);
    core::Bytes budgetAt(double ratio) const;
    void updateActive();
    void activate(const PlanPointer& plan);
    void loadOther();
    void select(const Selection& selection);
    void showFitting(core::Bytes budget);
    PlanPointer fitting(core::Bytes budget) const;

    DocumentPointer document_;
    std::vector<PlanPointer> files_;
    std::map<Key, PlanPointer> plans_;     // null: asked for and not there yet
    std::vector<PlanPointer> quickPlans_;  // none better than another in both ways
    core::Bytes budget_;
    std::optional<core::Bytes> previewed_;  // while the budget is being moved
    std::optional<core::Bytes> quickBudget_;
    bool coarseRequested_ = false;  // they were asked for
    core::Bytes infeasibleUpTo_;    // within this, quick attempts find nothing
    QStringList selected_;
    QStringList records_;
    bool frontierWanted_ = false;
    bool following_ = false, followLoading_ = false, followAgain_ = false;
    PlanPointer chosen_;
    PlanPointer active_;
    PlanChanges activeChanges_;
    std::shared_ptr<const StepCurve> live_;
    Selection selection_;
    std::optional<TimeRange> range_;
    QString working_;
    core::OpIndex rangeFrom_ = core::kNone;  // where a range that is stretched began
    DocumentPointer other_;
    // Last: they stop before what their tasks deliver into goes away. Nothing quick ever waits for
    // a search, and no search is in the way of opening.
    TaskQueue queue_, searches_{TaskQueue::Priority::Background},
        quick_{TaskQueue::Priority::Background}, coarse_{TaskQueue::Priority::Background},
        attempts_, others_, readers_;
};

}  // namespace hw::viewer
