// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/picture_dialog.h"

#include <QDialogButtonBox>
#include <QFormLayout>
#include <QPushButton>
#include <QVBoxLayout>
#include <algorithm>

#include "viewer/plots/theme.h"

namespace hw::viewer {

PictureDialog::PictureDialog(const std::vector<const PanelKind*>& views, const PanelKind* first,
                             QWidget* parent)
    : QDialog(parent), views_(views) {
    setObjectName(QStringLiteral("pictureDialog"));
    setWindowTitle(tr("Save picture"));
    view_ = new QComboBox;
    view_->setObjectName(QStringLiteral("pictureView"));
    for (const PanelKind* kind : views_) view_->addItem(viewText(kind->title));
    view_->addItem(tr("The whole window"));
    view_->setCurrentIndex(
        static_cast<int>(std::find(views_.begin(), views_.end(), first) - views_.begin()));
    size_ = new QComboBox;
    size_->setObjectName(QStringLiteral("pictureSize"));
    for (const PicturePreset& preset : picturePresets()) size_->addItem(viewText(preset.title));
    light_ = new QCheckBox(tr("light colours, for paper"));
    auto* form = new QFormLayout;
    form->addRow(tr("What"), view_);
    form->addRow(tr("Size"), size_);
    form->addRow(QString(), light_);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Save | QDialogButtonBox::Cancel);
    buttons->button(QDialogButtonBox::Save)->setText(tr("Save as…"));
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(20, 18, 20, 16);
    column->setSpacing(14);
    column->addLayout(form);
    column->addWidget(buttons);
    connect(view_, &QComboBox::currentIndexChanged, this, &PictureDialog::update);
    connect(size_, &QComboBox::currentIndexChanged, this, &PictureDialog::update);
    connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    update();
}

// The window is drawn as it is.
void PictureDialog::update() {
    size_->setEnabled(view() != nullptr);
    light_->setEnabled(view() != nullptr);
    light_->setChecked(view() && size_->currentIndex() > 0 ? true : theme().light);
}

const PanelKind* PictureDialog::view() const {
    const auto at = static_cast<std::size_t>(view_->currentIndex());
    return at < views_.size() ? views_[at] : nullptr;
}

PicturePreset PictureDialog::size() const {
    PicturePreset chosen = picturePresets()[static_cast<std::size_t>(size_->currentIndex())];
    chosen.light = light_->isChecked();
    return chosen;
}

QString PictureDialog::suggestion() const {
    if (!view()) return QStringLiteral("window.png");
    const QString name = QLatin1String(view()->name);
    return size_->currentIndex() == 0
               ? name + QStringLiteral(".png")
               : QStringLiteral("%1-%2.png").arg(name, QLatin1String(size().name));
}

}  // namespace hw::viewer
