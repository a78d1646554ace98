// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/tool.h"

#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>
#include <QProcess>
#include <QStringList>

namespace hw::viewer {

QString toolProgram() {
    return QDir(QCoreApplication::applicationDirPath()).filePath(QStringLiteral("highwater"));
}

QString programName(const QString& command) {
    const QStringList words = QProcess::splitCommand(command);
    for (const QString& word : words)
        if (word.endsWith(QLatin1String(".py"))) return QFileInfo(word).fileName();
    return words.isEmpty() ? QStringLiteral("run") : QFileInfo(words.front()).fileName();
}

ToolError toolError(const QString& said) {
    static const QString error = QStringLiteral("highwater: error: "),
                         hint = QStringLiteral("hint: ");
    ToolError found;
    for (const QString& line : said.split(QLatin1Char('\n'))) {
        if (line.startsWith(error)) found = {line.mid(error.size()).trimmed(), {}};
        if (line.startsWith(hint)) found.hint = line.mid(hint.size()).trimmed();
    }
    return found;
}

QString toolProgress(const QString& said) {
    static const QString own = QStringLiteral("highwater: ");
    const QStringList lines = said.left(said.lastIndexOf(QLatin1Char('\n')) + 1)
                                  .split(QLatin1Char('\n'), Qt::SkipEmptyParts);
    for (auto line = lines.crbegin(); line != lines.crend(); ++line)
        if (line->startsWith(own) && toolError(*line).what.isEmpty()) return line->mid(own.size());
    return {};
}

}  // namespace hw::viewer
