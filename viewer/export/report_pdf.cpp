// SPDX-License-Identifier: GPL-3.0-or-later
#include <QAbstractTextDocumentLayout>
#include <QBuffer>
#include <QPainter>
#include <QPdfWriter>
#include <QSvgRenderer>
#include <QTextDocument>
#include <QTextObjectInterface>

#include "core/base/file.h"
#include "viewer/export/report.h"

namespace hw::viewer {
namespace {

constexpr double kMarginMm = 18;
constexpr int kResolution = 1200;
constexpr double kPdfPixels = 96;                                         // an inch of the layout
constexpr double kPageWidth = (210 - 2 * kMarginMm) / 25.4 * kPdfPixels;  // A4 between its margins

const char* const kPrintedStyle = R"(
body { color: #1c232b; font-size: 9pt; }
h1 { font-size: 16pt; margin: 0; }
h2 { font-size: 12pt; margin-top: 16pt; margin-bottom: 4pt; }
.muted { color: #5d6875; font-size: 8pt; }
.value { font-size: 13pt; font-weight: 600; }
th { color: #5d6875; font-size: 7.5pt; font-weight: normal; border-bottom: 0.5px solid #d5dbe2; }
.figures { border-bottom: none; }
.space { font-size: 5pt; margin: 0; }
td { font-size: 8pt; border-bottom: 0.5px solid #e6eaef; }
)";

// Pictures stay vectors: the document's images are drawn from their SVG.
class Pictures : public QObject, public QTextObjectInterface {
    Q_OBJECT
    Q_INTERFACES(QTextObjectInterface)
public:
    explicit Pictures(const Report& report) : report_(report) {}

    QSizeF intrinsicSize(QTextDocument*, int, const QTextFormat& format) override {
        const QSvgRenderer renderer(svg(format));
        const QSizeF size = renderer.defaultSize();
        return size.isEmpty() ? QSizeF() : size * (kPageWidth / size.width());
    }
    void drawObject(QPainter* painter, const QRectF& where, QTextDocument*, int,
                    const QTextFormat& format) override {
        QSvgRenderer renderer(svg(format));
        renderer.render(painter, where);
    }

private:
    const QByteArray& svg(const QTextFormat& format) const {
        const int section = format.toImageFormat().name().section(QLatin1Char(':'), 1).toInt();
        return report_.sections[static_cast<std::size_t>(section)].picture;
    }
    const Report& report_;
};

QString printedTable(const ReportTable& table) {
    const auto cell = [&](const char* tag, int column, const QString& content, bool chosen) {
        QString inside = content.toHtmlEscaped();
        if (column >= table.texts) inside.replace(QLatin1Char(' '), QStringLiteral("&nbsp;"));
        return QStringLiteral("<%1 align=\"%2\"%3>%4</%1>")
            .arg(QLatin1String(tag),
                 column < table.texts ? QStringLiteral("left") : QStringLiteral("right"),
                 chosen ? QStringLiteral(" bgcolor=\"#e7f3ee\"") : QString(), inside);
    };
    QString html = QStringLiteral(
        "<table width=\"100%\" cellspacing=\"0\" cellpadding=\"2\" style=\"border-collapse: "
        "collapse\"><thead><tr>");  // which Qt repeats on every page
    for (int i = 0; i < table.header.size(); ++i) html += cell("th", i, table.header[i], false);
    html += QStringLiteral("</tr></thead>");
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
        html += QStringLiteral("<tr>");
        for (int i = 0; i < table.rows[row].size(); ++i)
            html += cell("td", i, table.rows[row][i], static_cast<int>(row) == table.emphasized);
        html += QStringLiteral("</tr>");
    }
    return html + QStringLiteral("</table><p class=\"space\">&nbsp;</p>");
}

QString bodyOf(const Report& report) {
    QString subtitle = report.subtitle.toHtmlEscaped();
    subtitle.replace(QLatin1Char('\n'), QStringLiteral("<br>"));
    QString html = QStringLiteral(
                       "<h1>%1</h1><p class=\"muted\">%2</p><p class=\"space\">&nbsp;</p><table "
                       "width=\"100%\"><tr>")
                       .arg(report.title.toHtmlEscaped(), subtitle);
    for (const Report::Figure& figure : report.figures)
        html += QStringLiteral(
                    "<td class=\"figures\"><span class=\"muted\">%1</span><br><span "
                    "class=\"value\">%2</span></td>")
                    .arg(figure.label.toHtmlEscaped(), figure.value.toHtmlEscaped());
    html += QStringLiteral("</tr></table><p>%1</p>").arg(report.lead.toHtmlEscaped());
    for (std::size_t i = 0; i < report.sections.size(); ++i) {
        const ReportSection& section = report.sections[i];
        html += QStringLiteral("<h2>%1</h2>").arg(section.title.toHtmlEscaped());
        for (const QString& paragraph : section.paragraphs)
            html += QStringLiteral("<p>%1</p>").arg(paragraph.toHtmlEscaped());
        if (!section.picture.isEmpty())
            html += QStringLiteral("<p><img src=\"section:%1\"></p><p class=\"muted\">%2</p>")
                        .arg(i)
                        .arg(section.caption.toHtmlEscaped());
        for (const ReportTable& table : section.tables) html += printedTable(table);
    }
    return html + QStringLiteral("<p class=\"muted\">%1</p>").arg(report.footer.toHtmlEscaped());
}

}  // namespace

core::Status saveReportPdf(const Report& report, const std::string& file) {
    QByteArray bytes;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    QPdfWriter writer(&buffer);
    writer.setTitle(report.title);
    writer.setCreator(QStringLiteral("Highwater"));
    writer.setResolution(kResolution);
    writer.setPageSize(QPageSize(QPageSize::A4));
    writer.setPageMargins(QMarginsF(kMarginMm, kMarginMm, kMarginMm, kMarginMm),
                          QPageLayout::Millimeter);
    const core::Error cannot{core::ErrorCode::Internal, "the report could not be drawn",
                             "write it as HTML"};
    QPainter painter;
    if (!painter.begin(&writer)) return cannot;
    const double scale = kResolution / kPdfPixels;
    const QSizeF page(writer.width() / scale, writer.height() / scale);

    QTextDocument document;
    Pictures pictures(report);
    document.documentLayout()->registerHandler(QTextFormat::ImageObject, &pictures);
    document.setDefaultStyleSheet(QLatin1String(kPrintedStyle));
    document.setDocumentMargin(0);
    document.setPageSize(page);
    document.setHtml(bodyOf(report));
    painter.scale(scale, scale);
    for (int i = 0; i < document.pageCount(); ++i) {
        if (i > 0 && !writer.newPage()) return cannot;
        painter.save();
        painter.translate(0, -i * page.height());
        QAbstractTextDocumentLayout::PaintContext context;
        context.clip = QRectF(0, i * page.height(), page.width(), page.height());
        painter.setClipRect(context.clip);
        document.documentLayout()->draw(&painter, context);
        painter.restore();
    }
    if (!painter.end()) return cannot;
    return core::writeFileAtomically(file, bytes.toStdString());
}

}  // namespace hw::viewer

#include "report_pdf.moc"
