// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QComboBox>
#include <QLineEdit>
#include <QScrollArea>
#include <QScrollBar>

#include "viewer/models/task_queue.h"
#include "viewer/panels/panel.h"
#include "viewer/panels/table_view.h"
#include "viewer/plots/band_legend.h"
#include "viewer/plots/flame_view.h"
#include "viewer/plots/legend.h"

namespace hw::viewer {

/// Which code, or which layers, made what is live at the peak or saved for the backward.
class FlamePanel : public Panel {
    Q_OBJECT
public:
    static const PanelKind kKind;
    explicit FlamePanel(Workspace& workspace);

    FlameView& view() const { return *view_; }
    QComboBox& bytes() const { return *bytes_; }
    QComboBox& tree() const { return *tree_; }
    /// Whether another session is beside; hidden while there is none.
    QComboBox& beside() const { return *beside_; }
    QLineEdit& search() const { return *search_; }
    void applyTheme() override;
    int naturalHeight() const override { return view_->minimumHeight(); }
    core::Status prepareShot(const std::vector<std::string>& planFiles) override;

protected:
    void showEvent(QShowEvent* event) override;

private:
    void reload();
    /// What is asked for, and the tree made of it.
    struct Request {
        DocumentPointer document, other;  // other: null without another session beside
        int bytes;
        core::OriginTree by;
    };
    struct Made {
        core::OriginNode root;
        BandSet bands;
    };
    Request request() const;
    void chooseTree();
    static Made make(const Request& request);
    static core::OriginNode treeOf(const Document& document, const Request& request);
    void otherArrived();
    void take(const Request& request, Made made);
    void updateLegend();

    FlameView* view_;
    QScrollArea* scroll_;
    QComboBox *bytes_, *tree_, *beside_;
    QLineEdit* search_;
    Legend* legend_;
    bool stale_ = true;
    BandSet bands_;    // of what is shown
    TaskQueue queue_;  // last: it stops before the rest goes away
};

}  // namespace hw::viewer
