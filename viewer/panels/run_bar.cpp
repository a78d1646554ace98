// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/run_bar.h"

#include <QHBoxLayout>
#include <cmath>

namespace hw::viewer {

QString clockText(double seconds) {
    const auto passed = static_cast<int>(std::floor(seconds));
    return QStringLiteral("%1:%2").arg(passed / 60).arg(passed % 60, 2, 10, QLatin1Char('0'));
}

RunBar::RunBar(const QString& name) {
    setObjectName(name + QStringLiteral("Bar"));
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
    mark_ = new QLabel(QStringLiteral("●"));
    mark_->setObjectName(name + QStringLiteral("Mark"));
    text_ = new QLabel;
    text_->setObjectName(name + QStringLiteral("Text"));
    text_->setMinimumWidth(1);
    button_ = new QPushButton;
    button_->setObjectName(name + QStringLiteral("Button"));
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(8);
    row->addWidget(mark_);
    row->addWidget(text_);
    row->addWidget(button_);
    row->addStretch(1);
    second_.setInterval(1000);
    connect(&second_, &QTimer::timeout, this, &RunBar::refresh);
    connect(button_, &QPushButton::clicked, this, [this] { pressed(); });
    hide();
}

void RunBar::refresh() {
    const std::optional<Content> now = content();
    setVisible(now.has_value());
    emit shown(now.has_value());
    if (!now) return second_.stop();
    if (!second_.isActive()) second_.start();
    mark_->setStyleSheet(QStringLiteral("color: %1").arg(now->mark.name()));
    button_->setText(now->button);
    button_->setEnabled(now->pressable);
    whole_ = now->parts.join(QStringLiteral(" · "));
    setToolTip(now->tip);
    fitText();
}

void RunBar::fitText() {
    const int room =
        width() - mark_->sizeHint().width() - button_->sizeHint().width() - 2 * layout()->spacing();
    const QFontMetrics metrics(text_->font());
    text_->setText(metrics.horizontalAdvance(whole_) > room && isVisible()
                       ? metrics.elidedText(whole_, Qt::ElideRight, room)
                       : whole_);
}

void RunBar::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    fitText();
}

}  // namespace hw::viewer
