// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/command_palette.h"

#include <QPointer>
#include <QTimer>
#include <algorithm>

namespace hw::viewer {
namespace {

constexpr QSize kSize(520, 380);

// The letters in their order, with anything between them: "expl" finds "Export plan".
bool matches(const QString& text, const QString& typed) {
    qsizetype from = 0;
    return std::all_of(typed.begin(), typed.end(), [&](QChar letter) {
        if (letter.isSpace()) return true;
        const qsizetype at = text.indexOf(letter, from, Qt::CaseInsensitive);
        from = at + 1;
        return at >= 0;
    });
}

QString line(const QAction& action) {
    const QString keys = action.shortcut().toString(QKeySequence::NativeText);
    return keys.isEmpty() ? action.text() : QStringLiteral("%1    %2").arg(action.text(), keys);
}

}  // namespace

CommandPalette::CommandPalette(const QList<QAction*>& actions, QWidget* parent)
    : Finder(new QListWidget, kSize, parent), list_(findChild<QListWidget*>()) {
    setObjectName(QStringLiteral("commandPalette"));
    setWindowTitle(tr("Commands"));
    std::copy_if(actions.begin(), actions.end(), std::back_inserter(offered_),
                 [](const QAction* action) { return action->isEnabled(); });
    field().setPlaceholderText(tr("what to do"));
    field().setAccessibleName(tr("command"));
    narrow({});
}

// Commands that begin so stand first, the others keep their order.
void CommandPalette::narrow(const QString& typed) {
    list_->clear();
    const QString wanted = typed.trimmed();
    for (const bool first : {true, false})
        for (qsizetype i = 0; i < offered_.size(); ++i) {
            const QString text = offered_[i]->text();
            if (text.startsWith(wanted, Qt::CaseInsensitive) != first || !matches(text, wanted))
                continue;
            auto* item = new QListWidgetItem(line(*offered_[i]), list_);
            item->setData(Qt::UserRole, i);
            item->setToolTip(offered_[i]->toolTip());
        }
    toFirstRow();
}

void CommandPalette::perform() {
    const QListWidgetItem* item = list_->currentItem();
    if (!item) return;
    const QPointer<QAction> chosen = offered_[item->data(Qt::UserRole).toLongLong()];
    accept();
    // Once this is gone, so that a dialog of the command has the window to itself.
    QTimer::singleShot(0, chosen, &QAction::trigger);
}

}  // namespace hw::viewer
