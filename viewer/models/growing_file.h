// SPDX-License-Identifier: GPL-3.0-or-later
// A text file that another process appends to for as long as it lives, read as it grows.
#pragma once

#include <QByteArray>
#include <QByteArrayList>
#include <QString>

namespace hw::viewer {

class GrowingFile {
public:
    explicit GrowingFile(QString path = {}) : path_(std::move(path)) {}

    const QString& path() const { return path_; }
    /// What has come since the last call, in whole lines; a torn one waits for its end. A carriage
    /// return ends a line too, as progress bars write them. None while there is no such file.
    QByteArrayList newLines();

private:
    QString path_;
    qint64 read_ = 0;
    QByteArray torn_;
};

}  // namespace hw::viewer
