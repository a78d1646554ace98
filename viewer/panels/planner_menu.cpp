// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/planner_menu.h"

#include <QMenu>
#include <QWidgetAction>

#include "planners/registry.h"
#include "viewer/plots/planner_style.h"

namespace hw::viewer {

PlannerMenu::PlannerMenu(Workspace& workspace) : workspace_(workspace) {
    setPopupMode(QToolButton::InstantPopup);
    setToolTip(tr("Which planners follow the budget and have a curve"));
    auto* menu = new QMenu(this);
    for (const planners::PlannerInfo& info : planners::plannerList()) {
        auto* box = new QCheckBox(toQString(info.name));
        box->setObjectName(toQString(info.name));
        box->setToolTip(toQString(info.description));
        box->setIconSize(QSize(38, 12));
        box->setStyleSheet(QStringLiteral("padding: 2px 14px 2px 10px"));
        // An action each: the arrow keys of a menu go from action to action.
        auto* action = new QWidgetAction(menu);
        action->setDefaultWidget(box);
        menu->addAction(action);
        boxes_.push_back(box);
        connect(box, &QCheckBox::toggled, this, [this] {
            QStringList ticked;
            for (const QCheckBox* each : boxes_)
                if (each->isChecked()) ticked << each->objectName();
            workspace_.selectPlanners(ticked);
        });
    }
    setMenu(menu);
    // Once it shows; a menu gives the keys to a widget in it only when a key has gone there.
    connect(
        menu, &QMenu::aboutToShow, menu,
        [this, menu] {
            menu->setActiveAction(menu->actions().front());
            boxes_.front()->setFocus(Qt::TabFocusReason);
        },
        Qt::QueuedConnection);
    connect(&workspace, &Workspace::plannersChanged, this, &PlannerMenu::update);
    applyTheme();
    update();
}

void PlannerMenu::applyTheme() {
    for (QCheckBox* box : boxes_) box->setIcon(plannerIcon(box->objectName()));
}

void PlannerMenu::update() {
    for (QCheckBox* box : boxes_) {
        const QSignalBlocker quiet(box);
        box->setChecked(workspace_.selectedPlanners().contains(box->objectName()));
    }
    const qsizetype count = workspace_.selectedPlanners().size();
    setText(count == 1 ? tr("1 planner") : tr("%1 planners").arg(count));
}

}  // namespace hw::viewer
