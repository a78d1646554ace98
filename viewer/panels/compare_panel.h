// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QLabel>

#include "viewer/models/compare_model.h"
#include "viewer/panels/figure_strip.h"
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
    QString figure(int which) const { return figures_->figure(static_cast<std::size_t>(which)); }
    core::Status compute() override;
    /// With what a plan of this session would run, or what is missing for that.
    void setRunner(const QString& text, bool runs);
    int naturalHeight() const override;  // figures and rows, nothing empty below
    void applyTheme() override;
    void hideControls() override;
    QSize minimumSizeHint() const override;

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    void updateFigures();
    void chooseColumns();
    void placeFigures();
    void showDrawn();
    QStringList figures() const;
    QString outcomeText() const;
    QString runnerText() const;

    CompareModel* model_;
    TableView* table_;
    FigureStrip* figures_;
    QLabel* budget_;   // in a picture
    QLabel* outcome_;  // of a run, or of asking whether there can be one
    QString runner_;
    bool runs_ = true;
    int seenRow_ = -1;  // of the plan that is drawn, when it was scrolled to
    QLabel* empty_;     // instead of them, where nothing can be planned
};

}  // namespace hw::viewer
