// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/panel.h"

#include <QAbstractButton>
#include <QAbstractScrollArea>
#include <QComboBox>
#include <QCoreApplication>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QProgressBar>
#include <QSlider>

namespace hw::viewer {
namespace {
constexpr int kPanelHeaderHeight = 34;

std::string viewsWith(bool TraceAxes::*axis) {
    std::string names;
    for (const PanelKind* kind : panelKinds())
        if (kind->axes.*axis) names += (names.empty() ? "" : " and ") + std::string(kind->name);
    return names;
}

}  // namespace

QString viewText(const char* text) {
    return QCoreApplication::translate("View", text);
}

Panel::Panel(Workspace& workspace, const PanelKind& kind) : workspace_(workspace), kind_(kind) {
    setWhatsThis(viewText(kind.help));
    setAttribute(Qt::WA_StyledBackground);
    header_ = new QWidget;
    header_->setObjectName(QStringLiteral("panelHeader"));
    header_->setAttribute(Qt::WA_StyledBackground);
    auto* row = new QHBoxLayout(header_);
    row->setContentsMargins(14, 0, 14, 0);
    row->setSpacing(10);
    // A dock goes by the hint of its title bar.
    row->addItem(new QSpacerItem(0, kPanelHeaderHeight, QSizePolicy::Fixed, QSizePolicy::Fixed));
    auto* label = new QLabel(title());
    label->setObjectName(QStringLiteral("panelTitle"));
    row->addWidget(label, 0);
    label->setFixedHeight(kPanelHeaderHeight);
    row->addStretch(1);
}

void Panel::addToHeader(QWidget* widget) {
    header_->layout()->addWidget(widget);
}

QLabel* Panel::makeNote() {
    auto* note = new QLabel;
    note->setObjectName(QStringLiteral("muted"));
    note->setAlignment(Qt::AlignCenter);
    note->setWordWrap(true);
    note->setContentsMargins(40, 0, 40, 0);
    return note;
}

QString Panel::noStep() {
    return tr(
        "This trace holds no step, only what its allocator did: there is nothing to plan.\n"
        "Record the process with `highwater record` to see what a budget would cost.");
}

bool Panel::applies() const {
    return workspace_.document()->plannable || !kind_.needsStep;
}

core::Status Panel::compute() {
    return {};
}

void Panel::hideControls() {
    for (QWidget* root : std::initializer_list<QWidget*>{header_, this}) {
        for (QWidget* each : root->findChildren<QWidget*>())
            if (qobject_cast<QAbstractButton*>(each) || qobject_cast<QComboBox*>(each) ||
                qobject_cast<QLineEdit*>(each) || qobject_cast<QSlider*>(each) ||
                qobject_cast<QProgressBar*>(each))
                each->hide();
        for (auto* area : root->findChildren<QAbstractScrollArea*>()) {
            area->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
            area->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
        }
    }
}

core::Status Panel::prepareShot(const std::vector<std::string>&) {
    return {};
}

core::Status Panel::chooseAxes(TraceAxes axes) {
    if ((axes.steps && !kind_.axes.steps) || (axes.bytes && !kind_.axes.bytes))
        return core::Error{core::ErrorCode::Usage, "the axes of this view are fixed",
                           "--by-steps belongs to --view " + viewsWith(&TraceAxes::steps) +
                               ", --by-bytes to --view " + viewsWith(&TraceAxes::bytes)};
    setAxes(axes);
    return {};
}

}  // namespace hw::viewer
