// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/export/picture.h"

#include <QFileInfo>
#include <QImage>
#include <QPainter>
#include <QPdfWriter>
#include <QSvgGenerator>
#include <QWidget>
#include <cmath>

#include "viewer/plots/plot.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

constexpr double kPointsPerPixel = 0.75;  // 96 pixels and 72 points an inch

core::Error cannotWrite(const std::string& file) {
    return core::badInput("cannot write " + file, "choose a folder that exists and can be written");
}

QString ending(const std::string& file) {
    return QFileInfo(QString::fromStdString(file)).suffix().toLower();
}

core::Status savePng(QWidget& widget, const std::string& file, double scale) {
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
    if (!image.save(QString::fromStdString(file), "PNG")) return cannotWrite(file);
    return {};
}

core::Status saveSvg(QWidget& widget, const std::string& file) {
    QSvgGenerator generator;
    generator.setFileName(QString::fromStdString(file));
    generator.setSize(widget.size());
    generator.setViewBox(QRect(QPoint(), widget.size()));
    generator.setTitle(QStringLiteral("Highwater"));
    QPainter painter;
    if (!painter.begin(&generator)) return cannotWrite(file);
    painter.fillRect(widget.rect(), theme().window);
    widget.render(&painter);
    if (!painter.end()) return cannotWrite(file);
    return {};
}

core::Status savePdf(QWidget& widget, const std::string& file) {
    QPdfWriter writer(QString::fromStdString(file));
    writer.setCreator(QStringLiteral("Highwater"));
    writer.setResolution(1200);
    writer.setPageSize(QPageSize(QSizeF(widget.size()) * kPointsPerPixel, QPageSize::Point));
    writer.setPageMargins(QMarginsF());
    QPainter painter;
    if (!painter.begin(&writer)) return cannotWrite(file);
    painter.scale(1200 / 96.0, 1200 / 96.0);
    painter.fillRect(widget.rect(), theme().window);
    widget.render(&painter);
    if (!painter.end()) return cannotWrite(file);
    return {};
}

}  // namespace

core::Status checkPictureName(const std::string& file) {
    const QString kind = ending(file);
    if (kind == QLatin1String("png") || kind == QLatin1String("svg") ||
        kind == QLatin1String("pdf"))
        return {};
    return core::Error{core::ErrorCode::Usage,
                       "cannot tell the format of " + (file.empty() ? "the picture" : file),
                       "end the file name with .png, .svg or .pdf"};
}

core::Status savePictureOf(QWidget& widget, const std::string& file, double scale) {
    if (core::Status name = checkPictureName(file); !name) return name;
    const QString kind = ending(file);
    Plot::setVectorPainting(true);
    core::Status saved = kind == QLatin1String("png")   ? savePng(widget, file, scale)
                         : kind == QLatin1String("svg") ? saveSvg(widget, file)
                                                        : savePdf(widget, file);
    Plot::setVectorPainting(false);
    return saved;
}

}  // namespace hw::viewer
