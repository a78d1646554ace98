// SPDX-License-Identifier: GPL-3.0-or-later
// The address map: a rectangle a block of memory, over time and address.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "viewer/models/address_map.h"
#include "viewer/models/document.h"
#include "viewer/models/selection.h"
#include "viewer/plots/plane_plot.h"

namespace hw::viewer {

class MapPlot;

/// The blocks, and over them the seams, the peak, the selection and the title.
class MapLayer : public QCPLayerable {
public:
    enum class Part { Blocks, Marks };
    MapLayer(MapPlot* plot, Part part);

protected:
    void applyDefaultAntialiasingHint(QCPPainter* painter) const override;
    void draw(QCPPainter* painter) override;

private:
    void drawBlocks(QCPPainter* painter);
    void drawNames(QCPPainter* painter);
    void drawSeams(QCPPainter* painter);
    void drawPeak(QCPPainter* painter);
    void drawSelection(QCPPainter* painter);
    void drawTitle(QCPPainter* painter);
    MapPlot& plot_;
    Part part_;
    std::vector<std::pair<const MapBlock*, QRectF>> named_;  // with room for a name
};

class MapPlot : public PlanePlot {
    Q_OBJECT
public:
    explicit MapPlot(QWidget* parent = nullptr);

    /// `plan`: whose schedule the map is of; null: the recorded step.
    void show(const DocumentPointer& document, const PlanPointer& plan,
              std::shared_ptr<const AddressMap> map);
    /// Across: steps of the schedule instead of time.
    void setBySteps(bool steps);
    void setSelection(const Selection& selection);
    void setNote(const QString& note);  // instead of a map: what is missing, or being done

    const AddressMap* map() const { return map_.get(); }
    QString title() const override;
    /// What is at a pixel; empty where nothing is.
    QString describe(const QPointF& pixel) const override;
    const MapBlock* blockAt(const QPointF& pixel) const;
    QPointF pixelOf(const MapBlock& block) const;  // its middle
    /// Rectangles that the last frame painted, for tests of the level of detail.
    std::size_t painted() const { return painted_; }

signals:
    void storagePicked(hw::core::StorageIndex storage);
    void opPicked(hw::core::OpIndex op);
    void blockPicked(const hw::viewer::BlockFacts& block);

protected:
    QCPRange whole(const QCPAxis* axis) const override;
    void clicked(const QPointF& pixel) override;

private:
    friend class MapLayer;
    const StepCurve& curve() const { return plan_ ? plan_->curve : document_->curve; }
    double acrossOf(std::int32_t moment) const;  // in the unit of the axis
    core::Nanoseconds timeOf(std::int32_t moment) const;
    QString nameOf(const MapBlock& block) const;  // empty where nothing is known of it
    BlockFacts factsOf(const MapBlock& block) const;
    bool isSelected(const MapBlock& block) const;
    QRectF pixelsOf(const MapBlock& block) const;
    /// Blocks of one slot share a colour.
    static constexpr std::size_t kFirstShade = kBandCount, kSlots = kFirstShade + 4;
    std::size_t slotOf(const MapBlock& block) const;
    QColor colourOf(std::size_t slot) const;
    /// Pixels of moments and addresses, worked out once a frame.
    struct Scale {
        std::vector<double> xs;  // by moment
        double base = 0, perByte = 0;

        double x(std::int32_t moment) const {
            return moment < 0 ? xs.front()
                              : xs[std::min(static_cast<std::size_t>(moment), xs.size() - 1)];
        }
        double y(std::int64_t address) const {
            return base + perByte * static_cast<double>(address);
        }
    };
    Scale scale() const;

    DocumentPointer document_;
    PlanPointer plan_;
    std::shared_ptr<const AddressMap> map_;
    bool steps_ = false;
    Selection selection_;
    QString note_;
    std::size_t painted_ = 0;
};

}  // namespace hw::viewer
