// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/models/table_text.h"

#include <QStringList>
#include <cmath>

namespace hw::viewer {
namespace {

QString quoted(QString field) {
    static const QString special = QStringLiteral(",\"\r\n");
    bool needed = false;
    for (const QChar letter : field) needed = needed || special.contains(letter);
    if (!needed) return field;
    field.replace(QLatin1Char('"'), QStringLiteral("\"\""));
    return QLatin1Char('"') + field + QLatin1Char('"');
}

QString rawText(const QVariant& raw, const QVariant& shown) {
    if (!raw.isValid()) return shown.toString();
    if (raw.typeId() == QMetaType::Double)
        return std::isfinite(raw.toDouble()) ? QString::number(raw.toDouble(), 'g', 12) : QString();
    return raw.toString();
}

void appendCsv(const QAbstractItemModel& model, const QModelIndex& parent, QString& text) {
    for (int row = 0; row < model.rowCount(parent); ++row) {
        QStringList fields;
        for (int column = 0; column < model.columnCount(parent); ++column) {
            const QModelIndex cell = model.index(row, column, parent);
            fields << quoted(rawText(cell.data(kRawRole), cell.data()));
        }
        text += fields.join(QLatin1Char(',')) + QStringLiteral("\r\n");
        appendCsv(model, model.index(row, 0, parent), text);
    }
}

}  // namespace

QString rowsAsTsv(const QAbstractItemModel& model, const QModelIndexList& rows) {
    const auto flat = [](QString field) {
        return field.replace(QLatin1Char('\t'), QLatin1Char(' '))
            .replace(QLatin1Char('\n'), QLatin1Char(' '));
    };
    QStringList lines, header;
    for (int column = 0; column < model.columnCount(); ++column)
        header << flat(model.headerData(column, Qt::Horizontal).toString());
    lines << header.join(QLatin1Char('\t'));
    for (const QModelIndex& row : rows) {
        QStringList fields;
        for (int column = 0; column < model.columnCount(row.parent()); ++column)
            fields << flat(row.siblingAtColumn(column).data().toString());
        lines << fields.join(QLatin1Char('\t'));
    }
    return lines.join(QLatin1Char('\n'));
}

QString tableAsCsv(const QAbstractItemModel& model) {
    QStringList header;
    for (int column = 0; column < model.columnCount(); ++column)
        header << quoted(rawText(model.headerData(column, Qt::Horizontal, kRawRole),
                                 model.headerData(column, Qt::Horizontal)));
    QString text = header.join(QLatin1Char(',')) + QStringLiteral("\r\n");
    appendCsv(model, {}, text);
    return text;
}

}  // namespace hw::viewer
