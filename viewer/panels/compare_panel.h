// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QLabel>
#include <array>

#include "viewer/models/compare_model.h"
#include "viewer/panels/panel.h"
#include "viewer/panels/table_view.h"

namespace hw::viewer {

class ComparePanel : public Panel {
    Q_OBJECT
public:
    static const PanelKind kKind;
    explicit ComparePanel(Workspace& workspace);

    CompareModel& model() const { return *model_; }
    TableView& table() const { return *table_; }
    /// The four large figures: peak, step time, recomputed ops, distance from optimal.
    QString figure(int which) const { return figures_[static_cast<std::size_t>(which)]->text(); }
    core::Status prepareShot(const std::vector<std::string>& planFiles) override;
    int naturalHeight() const override;  // figures and rows, nothing empty below
    void applyTheme() override;

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    QWidget* makeFigures();
    /// The large figures get smaller where the room is short, never cut off.
    void fitFigures();
    void updateFigures();
    void writeFigures();

    std::array<QLabel*, 4> figures_{};
    CompareModel* model_;
    TableView* table_;
    QWidget* strip_;  // of the figures
    QLabel* empty_;   // instead of them, where nothing can be planned
};

}  // namespace hw::viewer
