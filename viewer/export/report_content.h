// SPDX-License-Identifier: GPL-3.0-or-later
// The story of one step of a session in words and tables, for a report.
#pragma once

#include <QAbstractItemModel>
#include <QByteArray>
#include <QStringList>
#include <vector>

#include "viewer/models/workspace.h"

namespace hw::viewer {

struct ReportTable {
    QStringList header;
    std::vector<QStringList> rows;
    int texts = 1;        // so many columns, from the left, are text; the others are figures
    int emphasized = -1;  // a row
};

struct ReportSection {
    QString title;
    QStringList paragraphs;
    QByteArray picture;  // SVG; empty: none
    QString caption;
    std::vector<ReportTable> tables;
};

struct Report {
    struct Figure {
        QString label, value;
    };
    QString title, subtitle;
    QString lead;
    std::vector<Figure> figures;
    std::vector<ReportSection> sections;
    QString footer;
};

/// All that a view's table shows.
ReportTable tableOf(const QAbstractItemModel& model);

/// Everything but the pictures, from what the workspace knows: the active plan is the chosen one.
/// Requires a document with a step.
Report reportContent(Workspace& workspace);

/// Sections that get a picture.
inline constexpr std::size_t kTimelineSection = 0, kHoldersSection = 1, kMapSection = 2,
                             kFrontierSection = 3;

}  // namespace hw::viewer
