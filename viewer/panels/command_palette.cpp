// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/command_palette.h"

#include <QKeyEvent>
#include <QPointer>
#include <QTimer>
#include <QVBoxLayout>
#include <algorithm>

namespace hw::viewer {
namespace {

constexpr int kWidth = 520, kHeight = 380, kBelowTop = 90;  // pixels

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

CommandPalette::CommandPalette(const QList<QAction*>& actions, QWidget* parent) : QDialog(parent) {
    setObjectName(QStringLiteral("commandPalette"));
    setWindowTitle(tr("Commands"));
    setAttribute(Qt::WA_DeleteOnClose);
    std::copy_if(actions.begin(), actions.end(), std::back_inserter(offered_),
                 [](const QAction* action) { return action->isEnabled(); });
    field_ = new QLineEdit;
    field_->setPlaceholderText(tr("what to do"));
    field_->setAccessibleName(tr("command"));
    field_->installEventFilter(this);
    list_ = new QListWidget;
    list_->setFocusPolicy(Qt::NoFocus);
    auto* column = new QVBoxLayout(this);
    column->addWidget(field_);
    column->addWidget(list_, 1);
    resize(kWidth, kHeight);
    if (parent) move(parent->mapToGlobal(QPoint((parent->width() - kWidth) / 2, kBelowTop)));
    connect(field_, &QLineEdit::textChanged, this, &CommandPalette::narrow);
    connect(field_, &QLineEdit::returnPressed, this, &CommandPalette::perform);
    connect(list_, &QListWidget::itemClicked, this, &CommandPalette::perform);
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
    list_->setCurrentRow(0);
}

void CommandPalette::perform() {
    const QListWidgetItem* item = list_->currentItem();
    if (!item) return;
    const QPointer<QAction> chosen = offered_[item->data(Qt::UserRole).toLongLong()];
    accept();
    // Once this is gone, so that a dialog of the command has the window to itself.
    QTimer::singleShot(0, chosen, &QAction::trigger);
}

bool CommandPalette::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() != QEvent::KeyPress) return QDialog::eventFilter(watched, event);
    const int key = static_cast<QKeyEvent*>(event)->key();
    const int by = key == Qt::Key_Down ? 1 : key == Qt::Key_Up ? -1 : 0;
    if (by == 0) return QDialog::eventFilter(watched, event);
    list_->setCurrentRow(std::clamp(list_->currentRow() + by, 0, std::max(0, list_->count() - 1)));
    return true;
}

}  // namespace hw::viewer
