// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/file_dialog.h"

#include <QCoreApplication>
#include <QFileDialog>
#include <QFileInfo>
#include <QRegularExpression>
#include <QStringList>

#include "core/import/import.h"

namespace hw::viewer {

QString openFilter() {
    QStringList patterns{QStringLiteral("*.hws")};
    for (const std::string& pattern : core::importPatterns())
        patterns << QString::fromStdString(pattern);
    return QCoreApplication::translate("Files", "Sessions, traces and logs (%1);;All files (*)")
        .arg(patterns.join(QLatin1Char(' ')));
}

void askToSave(QWidget* parent, const QString& title, const std::string& beside,
               const QString& suggestion, const QString& filter, const QString& suffix,
               const std::function<void(const QString&)>& take) {
    auto* dialog = new QFileDialog(
        parent, title, QFileInfo(QString::fromStdString(beside)).absolutePath(), filter);
    dialog->setObjectName(QStringLiteral("saveDialog"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setAcceptMode(QFileDialog::AcceptSave);
    dialog->setDefaultSuffix(suffix);
    dialog->selectFile(suggestion);
    // The name follows the kind that is chosen in the list of them.
    QObject::connect(dialog, &QFileDialog::filterSelected, dialog, [dialog](const QString& chosen) {
        static const QRegularExpression pattern(QStringLiteral("\\(\\*\\.([^)]+)\\)$"));
        const QRegularExpressionMatch found = pattern.match(chosen);
        if (!found.hasMatch()) return;
        const QString base =
            QFileInfo(dialog->selectedFiles().value(0)).fileName().section(QLatin1Char('.'), 0, 0);
        dialog->setDefaultSuffix(found.captured(1));
        if (!base.isEmpty()) dialog->selectFile(base + QLatin1Char('.') + found.captured(1));
    });
    QObject::connect(dialog, &QFileDialog::fileSelected, parent, take);
    dialog->open();
}

}  // namespace hw::viewer
