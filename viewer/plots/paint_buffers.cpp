// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/plots/paint_buffers.h"

#include <utility>

#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

QImage imageOf(const QSize& size, double ratio, QImage::Format format) {
    QImage image((QSizeF(size) * ratio).toSize().expandedTo(QSize(1, 1)), format);
    image.setDevicePixelRatio(ratio);
    return image;
}

}  // namespace

OpaqueBuffer::OpaqueBuffer(const QSize& size, double devicePixelRatio)
    : QCPAbstractPaintBuffer(size, devicePixelRatio) {
    OpaqueBuffer::reallocateBuffer();
}

void OpaqueBuffer::reallocateBuffer() {
    setInvalidated();
    image_ = imageOf(mSize, mDevicePixelRatio, QImage::Format_RGB32);
    image_.fill(theme().panel);
}

void OpaqueBuffer::clear(const QColor&) {
    image_.fill(theme().panel);
}

void OpaqueBuffer::draw(QCPPainter* painter) const {
    if (painter && painter->isActive()) painter->drawImage(0, 0, image_);
}

OverlayBuffer::OverlayBuffer(const QSize& size, double devicePixelRatio,
                             std::function<bool()> shows)
    : QCPAbstractPaintBuffer(size, devicePixelRatio), shows_(std::move(shows)) {
    OverlayBuffer::reallocateBuffer();
}

void OverlayBuffer::reallocateBuffer() {
    setInvalidated();
    image_ = imageOf(mSize, mDevicePixelRatio, QImage::Format_ARGB32_Premultiplied);
    image_.fill(Qt::transparent);
    clean_ = true;
}

QCPPainter* OverlayBuffer::startPainting() {
    clean_ = clean_ && !shows_();
    return new QCPPainter(&image_);
}

void OverlayBuffer::draw(QCPPainter* painter) const {
    if (!clean_ && painter && painter->isActive()) painter->drawImage(0, 0, image_);
}

void OverlayBuffer::clear(const QColor& colour) {
    if (!std::exchange(clean_, true)) image_.fill(colour);
}

}  // namespace hw::viewer
