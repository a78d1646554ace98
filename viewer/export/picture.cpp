// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/export/picture.h"

#include <QBuffer>
#include <QFileInfo>
#include <QImage>
#include <QPainter>
#include <QPdfWriter>
#include <QSvgGenerator>
#include <QWidget>
#include <cmath>

#include "core/base/file.h"
#include "viewer/plots/plot.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

constexpr double kInch = 25.4;  // millimetres
constexpr double kPixelsPerInch = 96, kPdfResolution = 1200;

double paperWidth(const QWidget& widget, double millimetres) {
    return millimetres > 0 ? millimetres : widget.width() / kPixelsPerInch * kInch;
}

using Picture = core::Result<QByteArray>;

core::Error cannotDraw() {
    return {core::ErrorCode::Internal, "the picture could not be drawn", "choose a smaller size"};
}

Picture png(QWidget& widget, double scale, double millimetres) {
    const QSize size(static_cast<int>(std::lround(widget.width() * scale)),
                     static_cast<int>(std::lround(widget.height() * scale)));
    QImage image(size, QImage::Format_ARGB32);
    if (image.isNull())
        return core::Error{core::ErrorCode::Usage, "the picture is too large",
                           "choose a smaller size or scale"};
    image.setDevicePixelRatio(scale);
    image.fill(theme().window);
    {
        // Vectors here too: the plots' own buffers have the screen's resolution.
        QPainter painter(&image);
        painter.setRenderHints(QPainter::Antialiasing | QPainter::TextAntialiasing);
        widget.render(&painter);
    }
    image.setDevicePixelRatio(1);
    const double metre = 1000 * size.width() / paperWidth(widget, millimetres);
    image.setDotsPerMeterX(static_cast<int>(std::lround(metre)));
    image.setDotsPerMeterY(static_cast<int>(std::lround(metre)));
    QByteArray bytes;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    if (!image.save(&buffer, "PNG")) return cannotDraw();
    return bytes;
}

Picture svg(QWidget& widget, double millimetres) {
    QByteArray bytes;
    QBuffer buffer(&bytes);
    QSvgGenerator generator;
    generator.setOutputDevice(&buffer);
    generator.setResolution(static_cast<int>(kPixelsPerInch));
    const double shrink = paperWidth(widget, millimetres) / kInch * kPixelsPerInch / widget.width();
    generator.setSize((QSizeF(widget.size()) * shrink).toSize());
    generator.setViewBox(QRect(QPoint(), widget.size()));
    generator.setTitle(QStringLiteral("Highwater"));
    QPainter painter;
    if (!painter.begin(&generator)) return cannotDraw();
    painter.fillRect(widget.rect(), theme().window);
    widget.render(&painter);
    if (!painter.end()) return cannotDraw();
    return bytes;
}

Picture pdf(QWidget& widget, double millimetres) {
    QByteArray bytes;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    QPdfWriter writer(&buffer);
    writer.setCreator(QStringLiteral("Highwater"));
    writer.setResolution(static_cast<int>(kPdfResolution));
    const double width = paperWidth(widget, millimetres);
    writer.setPageSize(QPageSize(QSizeF(width, width * widget.height() / widget.width()),
                                 QPageSize::Millimeter, {}, QPageSize::ExactMatch));
    writer.setPageMargins(QMarginsF());
    QPainter painter;
    if (!painter.begin(&writer)) return cannotDraw();
    const double unit = width / kInch * kPdfResolution / widget.width();
    painter.scale(unit, unit);
    painter.fillRect(widget.rect(), theme().window);
    widget.render(&painter);
    if (!painter.end()) return cannotDraw();
    return bytes;
}

}  // namespace

QString ending(const std::string& file) {
    return QFileInfo(QString::fromStdString(file)).suffix().toLower();
}

core::Status checkPictureName(const std::string& file) {
    const QString kind = ending(file);
    if (kind == QLatin1String("png") || kind == QLatin1String("svg") ||
        kind == QLatin1String("pdf"))
        return {};
    return core::Error{core::ErrorCode::Usage,
                       "cannot tell the format of " + (file.empty() ? "the picture" : file),
                       "end the file name with .png, .svg or .pdf"};
}

core::Status savePictureOf(QWidget& widget, const std::string& file, double scale,
                           double millimetres) {
    if (core::Status name = checkPictureName(file); !name) return name;
    const QString kind = ending(file);
    Plot::setVectorPainting(true);
    const Picture picture = kind == QLatin1String("png")   ? png(widget, scale, millimetres)
                            : kind == QLatin1String("svg") ? svg(widget, millimetres)
                                                           : pdf(widget, millimetres);
    Plot::setVectorPainting(false);
    if (!picture) return picture.error();
    return core::writeFileAtomically(file, picture->toStdString());
}

}  // namespace hw::viewer
