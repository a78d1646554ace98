// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QToolButton>

#include "viewer/models/task_queue.h"
#include "viewer/panels/panel.h"
#include "viewer/plots/legend.h"
#include "viewer/plots/map_plot.h"

namespace hw::viewer {

/// The address map of the plan that was chosen, of the recorded order, or of recorded addresses.
class MapPanel : public Panel {
    Q_OBJECT
public:
    static const PanelKind kKind;
    explicit MapPanel(Workspace& workspace);

    MapPlot& plot() const { return *plot_; }
    QToolButton& recordedButton() const { return *recorded_; }
    bool busy() const { return queue_.pending() > 0; }
    void applyTheme() override;
    core::Status prepareShot(const std::vector<std::string>& planFiles) override;

protected:
    void setAxes(TraceAxes axes) override;
    void showEvent(QShowEvent* event) override;

private:
    struct Request {
        DocumentPointer document;
        PlanPointer plan;
        bool recorded = false;
    };
    Request request() const;
    static std::shared_ptr<const AddressMap> make(const Request& request,
                                                  const std::function<bool()>& cancelled);
    void reload();
    void take(const Request& request, std::shared_ptr<const AddressMap> map);
    void updateLegend();

    MapPlot* plot_;
    Legend* legend_;
    QToolButton *recorded_, *steps_;
    bool stale_ = true;
    // Last: it stops before what its tasks deliver into goes away. Packing takes seconds.
    TaskQueue queue_{TaskQueue::Priority::Background};
};

}  // namespace hw::viewer
