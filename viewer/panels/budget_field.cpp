// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/budget_field.h"

#include <QKeyEvent>
#include <QTimer>
#include <QToolTip>
#include <cmath>

#include "core/base/parse_bytes.h"

namespace hw::viewer {
namespace {
constexpr int kMargins = 22;  // of the frame, in pixels
}

core::Result<core::Bytes> budgetOf(const QString& typed, core::Bytes peak) {
    const QString text = typed.trimmed();
    if (!text.endsWith(QLatin1Char('%'))) {
        // What is shown is "14.9 MB · 61 %", and may be typed over in part.
        return core::parseBytes(text.section(QStringLiteral("·"), 0, 0).trimmed().toStdString());
    }
    bool number = false;
    const double percent =
        text.section(QStringLiteral("·"), -1).chopped(1).trimmed().toDouble(&number);
    if (!number || !(percent > 0) || percent > 100)
        return core::Error{core::ErrorCode::Usage, "this is no share of the peak",
                           "write a percentage above 0 and at most 100"};
    return core::Bytes(
        static_cast<std::int64_t>(std::floor(static_cast<double>(peak.count()) * percent / 100)));
}

BudgetField::BudgetField(QWidget* parent) : QLineEdit(parent) {
    setObjectName(QStringLiteral("exactBudget"));
    setAccessibleName(tr("exact budget"));
    setToolTip(tr("The exact budget: bytes, MB, GB, MiB, GiB, or % of the recorded peak"));
    setAlignment(Qt::AlignRight);
    connect(this, &QLineEdit::returnPressed, this, &BudgetField::take);
}

void BudgetField::show(core::Bytes budget, core::Bytes peak, const SizeUnit& unit) {
    peak_ = peak;
    shown_ = peak == core::Bytes(0) ? QString()
                                    : QStringLiteral("%1 · %2").arg(
                                          unit.text(budget), percentText(ratio(budget, peak)));
    if (!(hasFocus() && isModified())) setText(shown_);
    updateGeometry();
}

void BudgetField::take() {
    if (peak_ == core::Bytes(0)) return;
    if (text() == shown_) return setModified(false);
    // Where only one half was typed over, that one counts.
    const QString bytes = text().section(QStringLiteral("·"), 0, 0).trimmed();
    const bool sameBytes = bytes == shown_.section(QStringLiteral("·"), 0, 0).trimmed();
    const core::Result<core::Bytes> wanted =
        budgetOf(sameBytes || !text().contains(QStringLiteral("·")) ? text() : bytes, peak_);
    if (!wanted || *wanted <= core::Bytes(0)) {
        QToolTip::showText(mapToGlobal(rect().bottomLeft()),
                           wanted ? tr("a budget is above 0") : toQString(wanted.error().hint),
                           this);
        return selectAll();
    }
    setModified(false);
    emit entered(*wanted);
    selectAll();
}

QSize BudgetField::sizeHint() const {
    return {fontMetrics().horizontalAdvance(shown_.isEmpty() ? QStringLiteral("00.00 GB · 100 %")
                                                             : shown_) +
                kMargins,
            QLineEdit::sizeHint().height()};
}

void BudgetField::focusInEvent(QFocusEvent* event) {
    QLineEdit::focusInEvent(event);
    QTimer::singleShot(0, this, &QLineEdit::selectAll);  // after the press that brought the focus
}

void BudgetField::focusOutEvent(QFocusEvent* event) {
    QLineEdit::focusOutEvent(event);
    setModified(false);
    setText(shown_);
}

void BudgetField::keyPressEvent(QKeyEvent* event) {
    if (event->key() != Qt::Key_Escape) return QLineEdit::keyPressEvent(event);
    setModified(false);
    setText(shown_);
    selectAll();
}

}  // namespace hw::viewer
