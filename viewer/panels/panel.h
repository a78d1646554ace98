// SPDX-License-Identifier: GPL-3.0-or-later
// A view of the window: one class a view, known by a name.
#pragma once

#include <QLabel>
#include <QWidget>
#include <string>
#include <vector>

#include "viewer/models/workspace.h"
#include "viewer/panels/panel_kind.h"

namespace hw::viewer {

class Panel : public QWidget {
    Q_OBJECT
public:
    Panel(Workspace& workspace, const PanelKind& kind);

    const PanelKind& kind() const { return kind_; }
    QString title() const { return viewText(kind_.title); }
    /// The line above the view; a dock uses it as its title bar, a picture draws it on top.
    QWidget* header() const { return header_; }

    /// Plans, here and now, what a picture of this view shows; takes seconds.
    virtual core::Status compute();
    /// Loads and draws, here and now, what a picture of this view needs.
    virtual core::Status prepareShot(const std::vector<std::string>& planFiles);
    /// What the axes count, for views that leave the choice. Usage: this view does not.
    core::Status chooseAxes(TraceAxes axes);
    /// Pixels that a picture of this view needs below its header.
    virtual int naturalHeight() const { return kAnyHeight; }
    static constexpr int kAnyHeight = 900;  // of a view that suits any
    /// A picture has nothing to press, to type into or to scroll.
    virtual void hideControls();
    /// Whether the window shows this view of the document that is open.
    virtual bool applies() const;
    /// Colours that no style sheet reaches.
    virtual void applyTheme() {}

protected:
    /// Only of those that its kind names.
    virtual void setAxes(TraceAxes) {}
    /// Puts a widget at the right end of the header.
    void addToHeader(QWidget* widget);
    Workspace& workspace() const { return workspace_; }
    /// What stands in the middle of a view that has nothing to show: why, and what to do.
    static QLabel* makeNote();
    /// That a trace without a step has nothing to plan or compare.
    static QString noStep();

private:
    Workspace& workspace_;
    const PanelKind& kind_;
    QWidget* header_;
};

}  // namespace hw::viewer
