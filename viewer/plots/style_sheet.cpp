// SPDX-License-Identifier: GPL-3.0-or-later
// The look of Qt's own widgets, in the colours of a theme.
#include <QRegularExpression>
#include <array>
#include <utility>

#include "viewer/plots/font_scale.h"
#include "viewer/plots/theme.h"

namespace hw::viewer {
namespace {

const QString kSheet = QStringLiteral(R"(
QWidget { background: @panel; color: @text; font-size: 13px; }
QMainWindow, QMainWindow::separator { background: @line; }
QMainWindow::separator { width: 1px; height: 1px; }
QToolBar, QStatusBar { background: @raised; border: none; spacing: 6px; padding: 6px 10px; }
QToolBar QLabel, QStatusBar QLabel { background: transparent; }
QToolBar QToolButton { padding: 4px 10px; }
QToolBar QToolButton[popupMode="1"] { padding-right: 24px; }
QToolButton::menu-button { border: none; border-left: 1px solid @line; width: 18px; }
QToolButton::menu-button:hover { background: @line; }
QFileDialog QToolButton { padding: 3px; }
QToolBar#runStrip { padding: 3px; }
QWidget#runRow, QWidget#recordingBar, QWidget#liveBar { background: transparent; }
QStatusBar { padding: 0px; min-height: 26px; }
QStatusBar::item { border: none; }
QLabel { background: transparent; }
QLabel#muted, QLabel#figureLabel { color: @muted; }
QLabel#figureLabel { font-size: 11px; }
QLabel#figure { font-size: 19px; font-weight: 600; }
QLabel#brand { font-size: 15px; font-weight: 700; }
QLabel#panelTitle { font-weight: 600; border-bottom: 2px solid @accent; }
QLabel#headline { font-size: 19px; font-weight: 600; }
QLabel#command { background: @raised; border: 1px solid @line; border-radius: 5px; padding: 8px 12px;
                 font-family: "DejaVu Sans Mono", monospace; }
QWidget#panelHeader { background: @panel; border-top: 1px solid @line; border-bottom: 1px solid @line; }
QPushButton, QToolButton { background: @raised; border: 1px solid @line; border-radius: 4px; padding: 4px 12px; }
QPushButton:hover, QToolButton:hover { border-color: @accent; }
QPushButton:focus, QToolButton:focus { border-color: @accent; }
QPushButton:disabled, QToolButton:disabled { color: @muted; }
QTableView, QTreeView { font-size: 12px; background: @panel; border: 1px solid @panel; gridline-color: @grid; selection-background-color: @selected;
             selection-color: @text; alternate-background-color: @panel; }
QTableView::item, QTreeView::item { padding: 0px 5px; border-bottom: 1px solid @grid; }
QTreeView::item:selected { background: @selected; color: @text; }
QLineEdit { background: @raised; border: 1px solid @line; border-radius: 4px; padding: 2px 6px; font-size: 12px; }
QLineEdit:focus { border-color: @accent; }
QLineEdit#exactBudget { font-size: 13px; font-weight: 600; background: transparent; border-color: @panel; }
QLineEdit#exactBudget:hover { border-color: @line; }
QLineEdit#exactBudget:focus { background: @raised; border-color: @accent; }
QLabel#runOutcome { background: @raised; border-radius: 4px; padding: 4px 0px; }
QListView { border: 1px solid @panel; }
QTreeView:focus, QTableView:focus, QListView:focus { border: 1px solid @accent; }
QCheckBox:focus, QComboBox:focus { color: @accent; }
QTabBar:focus { border-bottom: 1px solid @accent; }
QTabBar::tab:focus { color: @accent; }
QToolButton#qt_toolbar_ext_button { padding: 4px 4px; min-width: 16px; }
QSplitter::handle { background: @line; }
QHeaderView, QHeaderView::section { background: @panel; color: @muted; border: none; }
QHeaderView::section { font-size: 11px; padding: 6px 7px; border-bottom: 1px solid @line; font-weight: 400; }
QSlider { background: transparent; min-height: 22px; }
QSlider::groove:horizontal { height: 5px; background: @line; border-radius: 2px; }
QSlider::sub-page:horizontal { background: @accent; border-radius: 2px; }
QSlider::handle:horizontal { background: @text; width: 16px; height: 16px; margin: -6px 0; border-radius: 8px; }
QSlider::handle:horizontal:focus { background: @accent; border: 2px solid @text; width: 12px; height: 12px; }
QProgressBar { background: @line; border: none; border-radius: 2px; max-height: 4px; min-height: 4px; }
QProgressBar::chunk { background: @accent; border-radius: 2px; }
QScrollBar:vertical { background: @panel; width: 9px; margin: 0; }
QScrollBar:horizontal { background: @panel; height: 9px; margin: 0; }
QScrollBar::handle { background: @line; border-radius: 4px; min-height: 24px; min-width: 24px; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QToolButton:checked { border-color: @accent; color: @accent; }
QTabBar { background: @panel; qproperty-drawBase: 0; }
QTabBar::tab { background: @panel; color: @muted; padding: 7px 14px; border: none; border-bottom: 2px solid @panel; }
QTabBar::tab:selected { color: @text; border-bottom: 2px solid @accent; }
QTabBar::tab:hover { color: @text; }
QFrame#listFrame { border: 1px solid @line; border-radius: 4px; }
QFrame#tour { background: @raised; border: 1px solid @accent; border-radius: 6px; }
QFrame#tour QLabel { background: transparent; }
QLabel#tourTitle { font-size: 15px; font-weight: 600; }
QMenu { background: @raised; border: 1px solid @line; }
QMenu QWidget { background: @raised; }
QToolTip { background: @raised; color: @text; border: 1px solid @line; padding: 4px; }
)");

// Every size of a font in a style sheet.
void scaleText(QString& sheet) {
    static const QRegularExpression size(QStringLiteral("font-size: (\\d+)px"));
    for (QRegularExpressionMatch found = size.match(sheet); found.hasMatch();
         found = size.match(sheet, found.capturedEnd(1)))
        sheet.replace(found.capturedStart(1), found.capturedLength(1),
                      QString::number(qRound(found.captured(1).toInt() * fontScale())));
}

}  // namespace

QString Theme::styleSheet() const {
    const QColor selected = blend(panel, accent, light ? 0.16 : 0.24);
    const std::array<std::pair<const char*, QColor>, 9> tokens{{{"@panel", panel},
                                                                {"@raised", raised},
                                                                {"@line", line},
                                                                {"@grid", grid},
                                                                {"@text", text},
                                                                {"@muted", muted},
                                                                {"@accent", accent},
                                                                {"@alert", alert},
                                                                {"@selected", selected}}};
    QString sheet = kSheet;
    for (const auto& [token, colour] : tokens) sheet.replace(QLatin1String(token), colour.name());
    if (fontScale() != 1) scaleText(sheet);
    return sheet;
}

}  // namespace hw::viewer
