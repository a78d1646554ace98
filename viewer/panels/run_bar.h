// SPDX-License-Identifier: GPL-3.0-or-later
// What runs beside the window, in a line: a coloured mark, what it is doing, and a button.
#pragma once

#include <QColor>
#include <QLabel>
#include <QPushButton>
#include <QTimer>
#include <QWidget>
#include <optional>

namespace hw::viewer {

/// "1:05".
QString clockText(double seconds);

class RunBar : public QWidget {
    Q_OBJECT
public:
    struct Content {
        QColor mark;
        QStringList parts;  // of the line
        QString tip;
        QString button;
        bool pressable = true;
    };

    /// Says what there is to say, every second while that is anything.
    void refresh();

signals:
    void shown(bool any);

protected:
    /// `name` begins the names of its parts.
    explicit RunBar(const QString& name);
    /// None: nothing runs, and the bar is not to be seen.
    virtual std::optional<Content> content() const = 0;
    virtual void pressed() = 0;
    void resizeEvent(QResizeEvent* event) override;

private:
    void fitText();

    QString whole_;  // the line, before it is made to fit
    QLabel *mark_, *text_;
    QPushButton* button_;
    QTimer second_;
};

}  // namespace hw::viewer
