// SPDX-License-Identifier: GPL-3.0-or-later
#include <QRegularExpression>

#include "viewer/export/report.h"

namespace hw::viewer {
namespace {

// A page as wide as paper; figures in one column width; nothing is loaded from anywhere.
const char* const kPageStyle = R"(
:root { color-scheme: light; }
body { margin: 0; background: #ffffff; color: #1c232b;
       font: 14px/1.5 Inter, "Segoe UI", "Helvetica Neue", Arial, "DejaVu Sans", sans-serif; }
main { max-width: 900px; margin: 0 auto; padding: 40px 24px 56px; }
h1 { font-size: 24px; line-height: 1.25; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 17px; margin: 36px 0 10px; padding-top: 14px; border-top: 1px solid #d5dbe2; }
p { margin: 8px 0; max-width: 76ch; }
.subtitle { color: #5d6875; white-space: pre-line; overflow-wrap: anywhere; }
.lead { font-size: 16px; margin: 18px 0; }
.figures { display: flex; flex-wrap: wrap; gap: 12px 44px; margin: 18px 0 0; }
.figures div span { display: block; color: #5d6875; font-size: 12px; }
.figures div b { font-size: 22px; font-weight: 600; font-variant-numeric: tabular-nums; }
figure { margin: 12px 0 16px; }
figure svg { width: 100%; height: auto; display: block; }
figcaption, footer { color: #5d6875; font-size: 12.5px; }
table { border-collapse: collapse; margin: 14px 0 18px; width: 100%; font-variant-numeric: tabular-nums; }
th { color: #5d6875; font-weight: 500; font-size: 12.5px; vertical-align: bottom; }
th, td { padding: 5px 10px 5px 0; text-align: right; border-bottom: 1px solid #e6eaef; white-space: nowrap; }
th:last-child, td:last-child { padding-right: 0; }
th.t, td.t { text-align: left; white-space: normal; overflow-wrap: break-word; min-width: 6.5em; }
tr.chosen td { font-weight: 600; background: #e7f3ee; }
footer { margin-top: 40px; padding-top: 12px; border-top: 1px solid #d5dbe2; }
@media print { @page { margin: 16mm; } body { font-size: 12px; } th, figcaption, footer { font-size: 10.5px; } main { padding: 0; max-width: none; }
  h2, figure, tr { break-inside: avoid; } h2 { break-after: avoid; } }
)";

QByteArray text(const QString& plain) {
    return plain.toHtmlEscaped().toUtf8();
}

QByteArray tableHtml(const ReportTable& table) {
    const auto cell = [&](const char* tag, int column, const QString& content) {
        return QByteArray("<") + tag + (column < table.texts ? " class=\"t\">" : ">") +
               text(content) + "</" + tag + ">";
    };
    QByteArray html = "<table><thead><tr>";
    for (int i = 0; i < table.header.size(); ++i) html += cell("th", i, table.header[i]);
    html += "</tr></thead><tbody>\n";
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
        html += static_cast<int>(row) == table.emphasized ? "<tr class=\"chosen\">" : "<tr>";
        for (int i = 0; i < table.rows[row].size(); ++i) html += cell("td", i, table.rows[row][i]);
        html += "</tr>\n";
    }
    return html + "</tbody></table>\n";
}

// As wide as the column, whatever size it was drawn at; named for those who cannot see it.
QByteArray pictureHtml(const ReportSection& section) {
    static const QRegularExpression size(
        QStringLiteral("^<svg width=\"[^\"]*\" height=\"[^\"]*\""));
    QString svg = QString::fromUtf8(section.picture);
    svg.replace(
        size,
        QStringLiteral("<svg role=\"img\" aria-label=\"%1\"").arg(section.title.toHtmlEscaped()));
    return "<figure>" + svg.toUtf8() + "<figcaption>" + text(section.caption) +
           "</figcaption></figure>\n";
}

}  // namespace

QByteArray reportHtml(const Report& report) {
    QByteArray html =
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
        "<meta name=\"viewport\" content=\"width=device-width\"><title>" +
        text(report.title) + "</title><style>" + kPageStyle + "</style></head><body>" +
        "<main>\n<h1>" + text(report.title) + "</h1>\n<div class=\"subtitle\">" +
        text(report.subtitle) + "</div>\n<div class=\"figures\">";
    for (const Report::Figure& figure : report.figures)
        html +=
            "<div><span>" + text(figure.label) + "</span><b>" + text(figure.value) + "</b></div>";
    html += "</div>\n<p class=\"lead\">" + text(report.lead) + "</p>\n";
    for (const ReportSection& section : report.sections) {
        html += "<section><h2>" + text(section.title) + "</h2>\n";
        for (const QString& paragraph : section.paragraphs)
            html += "<p>" + text(paragraph) + "</p>\n";
        if (!section.picture.isEmpty()) html += pictureHtml(section);
        for (const ReportTable& table : section.tables) html += tableHtml(table);
        html += "</section>\n";
    }
    return html + "<footer>" + text(report.footer) + "</footer>\n</main></body></html>\n";
}

}  // namespace hw::viewer
