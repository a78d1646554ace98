// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDockWidget>
#include <QLabel>
#include <QMainWindow>
#include <QMenu>
#include <QPointer>
#include <QToolBar>
#include <functional>
#include <optional>

#include "viewer/models/live_run.h"
#include "viewer/models/recorder.h"
#include "viewer/models/view_history.h"
#include "viewer/models/workspace.h"
#include "viewer/panels/attach_dialog.h"
#include "viewer/panels/eliding_label.h"
#include "viewer/panels/empty_state.h"
#include "viewer/panels/live_panel.h"
#include "viewer/panels/panel.h"
#include "viewer/panels/plan_actions.h"
#include "viewer/panels/tour.h"
#include "viewer/panels/train_dialog.h"
#include "viewer/panels/view_picture.h"
#include "viewer/panels/window_memory.h"

namespace hw::viewer {

class MainWindow : public QMainWindow {
    Q_OBJECT
public:
    explicit MainWindow(QWidget* parent = nullptr);

    Workspace& workspace() { return workspace_; }
    /// The view of that class, which is one of the registry's.
    template <class AnyPanel>
    AnyPanel& panel() const {
        return *findChild<AnyPanel*>();
    }
    EmptyState& emptyState() const { return *empty_; }
    Recorder& recorder() { return recorder_; }
    AttachDialog& attachDialog() const { return *attach_; }
    LiveRun& liveRun() { return live_; }
    TrainDialog& trainDialog() const { return *train_; }
    LivePanel& livePanel() const { return *livePanel_; }

    void open(const QString& path, const QStringList& plans = {});
    /// Loads and computes all that the window shows before it returns; for pictures.
    core::Status prepareShot(const std::string& session, const std::vector<std::string>& plans,
                             std::optional<std::int64_t> step, const std::string& device = {});
    void setLight(bool light);
    /// Text of all views, over its usual size.
    void setTextScale(double scale);
    /// Restores layout, look and the last files from there, and keeps them there; without it
    /// nothing is kept.
    void useMemory(WindowMemory memory);
    /// At the very first start: the sample session, and a tour of its views.
    void welcome();
    /// Opens a copy of the session that comes with Highwater, which may be run and planned.
    void openSample();
    void startTour();
    Tour* tour() const { return tour_; }
    /// Keeps the size that it has: a window grows when docks are laid out for the first time.
    void setVisible(bool visible) override;

protected:
    void closeEvent(QCloseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    bool focusNextPrevChild(bool next) override;
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dropEvent(QDropEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void buildToolBar();
    void buildShortcuts();
    void buildTimelineShortcuts();
    void buildSelectionShortcuts();
    void buildLayoutShortcuts();
    void buildHelpShortcuts();
    void buildDocks();
    QDockWidget* makeDock(const PanelKind& kind);
    void buildStatusBar();
    void connectWorkspace();
    void connectRecorder();
    void connectLive();
    void trainUnderPlan();
    void showLive();
    void endLive();
    void buildLiveDock();
    void placeLiveDock();
    void buildRunStrip();
    void placeRunStrip();
    bool showsStepOf(const PlannedStep& planned) const;
    static Panel& panelOf(const QDockWidget* dock) { return static_cast<Panel&>(*dock->widget()); }
    /// Those of an area, in the registry's order; never empty.
    std::vector<QDockWidget*> docksOf(PanelArea area) const;
    QDockWidget* firstDock(PanelArea area) const { return docksOf(area).front(); }
    void raiseFirstDocks();
    QAction* action(const QString& text, const QKeySequence& key, const QString& tip);
    QAction* action(const QString& text, const QKeySequence& key, const QString& tip,
                    const std::function<void()>& run);
    void arrange();
    /// The docks of a document that has just been opened: as they were kept, or as at first.
    void placeDocks();
    /// Those that have something to show of the document; while one is maximised that one alone.
    void showDocks();
    /// Fills the window with one view; again, of any: back to all of them.
    void toggleMaximised(QDockWidget* view);
    QDockWidget* viewWithKeys() const;
    void documentArrived();
    void rememberDocument();
    QString gapsLink() const;
    void showGaps();
    void offerBudget();
    void showFailure(const QString& what, const QString& hint);
    void buildContextMenus();
    void goTo(QDockWidget* view);
    QDockWidget* dockOf(const PanelKind& kind) const;
    void showSearch();
    /// The timeline shows this stretch of time; none: it stays.
    void zoomTo(const std::optional<TimeRange>& extent);
    void zoomToSelection();
    void copyFacts();
    void chooseFile();
    void savePicture();
    void drawPicture(const PanelKind* view, const PicturePreset& size, const QString& path);
    void writeReport();
    void showKeys();
    void showContextHelp();
    void connectHistory();
    void showPalette();
    void fillRecent();
    void resetLayout();

    Workspace workspace_;
    Recorder recorder_;
    LiveRun live_;
    QToolBar* tools_ = nullptr;
    QToolBar* runs_ = nullptr;
    EmptyState* empty_;
    AttachDialog* attach_;
    TrainDialog* train_;
    LivePanel* livePanel_;
    QDockWidget* liveDock_ = nullptr;
    bool liveClosed_ = false;  // somebody has read what came of the last run within a budget
    PlanActions* planActions_;
    ViewHistory* history_;
    QPointer<Tour> tour_;
    std::optional<WindowMemory> memory_;
    QByteArray keptState_;           // of the last start, until the first document is shown
    QByteArray stateBeforeMaximum_;  // while one view fills the window
    QDockWidget* maximised_ = nullptr;
    std::optional<core::Bytes> firstBudget_;  // until plans for it are there, or not
    bool arranged_ = false;                   // the docks have their places, kept or by arrange()
    QMenu* recent_ = nullptr;
    QByteArray firstState_;            // the docks as they were built
    std::string shown_;                // path of the document that the docks were arranged for
    std::vector<QDockWidget*> docks_;  // of the views, in the registry's order
    std::vector<QAction*> documentActions_;  // disabled without a document
    QList<QAction*> ofSelection_;            // of the menus that open where something is
    QLabel* title_ = nullptr;
    QLabel* status_ = nullptr;
    ElidingLabel* activity_ = nullptr;
};

}  // namespace hw::viewer
