// SPDX-License-Identifier: GPL-3.0-or-later
// Any widget as PNG, SVG or PDF.
#pragma once

#include <QSize>
#include <QString>
#include <string>

#include "core/base/result.h"

class QWidget;

namespace hw::viewer {

/// Renders `widget` at its present size; the ending of `file` chooses the format. `scale`: pixels
/// of a PNG per pixel of the widget. `millimetres`: width on paper; 0: 96 pixels of the widget an
/// inch. SVG and PDF are vectors. Usage: another ending. BadInput: the file cannot be written.
core::Status savePictureOf(QWidget& widget, const std::string& file, double scale,
                           double millimetres = 0);

/// Usage error when no picture can have this name.
core::Status checkPictureName(const std::string& file);

/// Of a file's name, as "png"; empty: it has none.
QString ending(const std::string& file);

}  // namespace hw::viewer
