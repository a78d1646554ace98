// SPDX-License-Identifier: GPL-3.0-or-later
// Tables as text: what Ctrl+C copies and what a CSV file holds.
#pragma once

#include <QAbstractItemModel>
#include <QModelIndexList>
#include <QString>

namespace hw::viewer {

/// The figure behind a cell's text: bytes, nanoseconds, a ratio, or a text. Sorting goes by it and
/// CSV files hold it. Of a header: the column's name with that figure's unit.
inline constexpr int kRawRole = Qt::UserRole;

/// The displayed text of these rows (one index a row) under a line of headers, tabs in between.
QString rowsAsTsv(const QAbstractItemModel& model, const QModelIndexList& rows);

/// Every row, parents before their children, with the raw figures where there are any (RFC 4180).
QString tableAsCsv(const QAbstractItemModel& model);

}  // namespace hw::viewer
