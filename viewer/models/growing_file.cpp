// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/growing_file.h"

#include <fcntl.h>

#include <QFile>

namespace hw::viewer {

QByteArrayList GrowingFile::newLines() {
    QFile file(path_);
    if (!file.open(QIODevice::ReadWrite | QIODevice::ExistingOnly) || !file.seek(read_)) return {};
    const QByteArray came = file.readAll();
    if (came.isEmpty()) return {};
    read_ += came.size();
    // Training takes days: what has been read gives its room on the disk back. Where that is not to
    // be had, the file stays as it is.
    ::fallocate(file.handle(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, read_);
    torn_ += came;
    torn_.replace('\r', '\n');
    QByteArrayList lines = torn_.split('\n');
    torn_ = lines.takeLast();
    lines.removeAll(QByteArray());
    return lines;
}

}  // namespace hw::viewer
