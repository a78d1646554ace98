// SPDX-License-Identifier: GPL-3.0-or-later
// A view of the window: one class a view, known by a name.
#pragma once

#include <QLabel>
#include <QWidget>
#include <functional>
#include <string>
#include <vector>

#include "viewer/models/trace_marks.h"
#include "viewer/models/workspace.h"

namespace hw::viewer {

class Panel : public QWidget {
    Q_OBJECT
public:
    Panel(Workspace& workspace, const QString& title);

    QString title() const { return title_; }
    /// The line above the view; a dock uses it as its title bar, a picture draws it on top.
    QWidget* header() const { return header_; }

    /// Computes, here and now, what a picture of this view needs.
    virtual core::Status prepareShot(const std::vector<std::string>& planFiles);
    /// What the axes count, for views that leave the choice. Usage: this view does not.
    virtual core::Status chooseAxes(TraceAxes axes);
    /// Pixels that a picture of this view needs below its header.
    virtual int naturalHeight() const { return 900; }
    /// Has nothing to show of a trace that holds no step.
    virtual bool needsStep() const { return false; }
    /// Colours that no style sheet reaches.
    virtual void applyTheme() {}

protected:
    /// Puts a widget at the right end of the header.
    void addToHeader(QWidget* widget);
    Workspace& workspace() const { return workspace_; }
    /// What stands in the middle of a view that has nothing to show: why, and what to do.
    static QLabel* makeNote();
    /// That a trace without a step has nothing to plan or compare.
    static QString noStep();

private:
    Workspace& workspace_;
    QString title_;
    QWidget* header_;
};

/// A view as `shot --view` and the window know it.
struct PanelKind {
    std::string name;
    std::function<Panel*(Workspace&)> make;
    bool everyPlanner = false;  // a picture shows all planners, not only the usual ones
};
const std::vector<PanelKind>& panelKinds();

}  // namespace hw::viewer
