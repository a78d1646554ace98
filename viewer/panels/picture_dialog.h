// SPDX-License-Identifier: GPL-3.0-or-later
// Asks what to draw and how large, before the picture gets its name.
#pragma once

#include <QCheckBox>
#include <QComboBox>
#include <QDialog>

#include "viewer/panels/view_picture.h"

namespace hw::viewer {

class PictureDialog : public QDialog {
    Q_OBJECT
public:
    /// `views`: those that have something to show; `first`: the one that is offered.
    PictureDialog(const std::vector<const PanelKind*>& views, const PanelKind* first,
                  QWidget* parent);

    /// The view that is chosen; null: the whole window.
    const PanelKind* view() const;
    PicturePreset size() const;
    /// "timeline-column.png"
    QString suggestion() const;

private:
    void update();

    std::vector<const PanelKind*> views_;
    QComboBox *view_, *size_;
    QCheckBox* light_;
};

}  // namespace hw::viewer
