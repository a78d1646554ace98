// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/panel.h"

#include <QHBoxLayout>
#include <QLabel>

namespace hw::viewer {
namespace {
constexpr int kHeaderHeight = 34;
}

Panel::Panel(Workspace& workspace, const QString& title) : workspace_(workspace), title_(title) {
    setAttribute(Qt::WA_StyledBackground);
    header_ = new QWidget;
    header_->setObjectName(QStringLiteral("panelHeader"));
    header_->setAttribute(Qt::WA_StyledBackground);
    auto* row = new QHBoxLayout(header_);
    row->setContentsMargins(14, 0, 14, 0);
    row->setSpacing(16);
    // A dock goes by the hint of its title bar.
    row->addItem(new QSpacerItem(0, kHeaderHeight, QSizePolicy::Fixed, QSizePolicy::Fixed));
    auto* label = new QLabel(title);
    label->setObjectName(QStringLiteral("panelTitle"));
    row->addWidget(label, 0);
    label->setFixedHeight(kHeaderHeight);
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

core::Status Panel::prepareShot(const std::vector<std::string>&) {
    return {};
}

core::Status Panel::chooseAxes(TraceAxes axes) {
    if (!axes.steps && !axes.bytes) return {};
    return core::Error{core::ErrorCode::Usage, "the axes of this view are fixed",
                       "--by-steps belongs to --view trace and map, --by-bytes to --view trace"};
}

}  // namespace hw::viewer
