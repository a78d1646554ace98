// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/file_dialog.h"

#include <QFileDialog>
#include <QFileInfo>

namespace hw::viewer {

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
    QObject::connect(dialog, &QFileDialog::fileSelected, parent, take);
    dialog->open();
}

}  // namespace hw::viewer
