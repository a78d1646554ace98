// SPDX-License-Identifier: GPL-3.0-or-later
// What is live under the cursor: a line through the plot and a box beside it.
#pragma once

#include <QString>
#include <optional>
#include <vector>

#include "viewer/models/document.h"
#include "viewer/plots/plot.h"

namespace hw::viewer {

/// The text of the box, found without drawing.
struct ReadoutContent {
    struct Line {
        QColor colour;
        QString name, size;
    };
    double milliseconds = 0;
    QString title, subtitle, rest;
    std::vector<Line> lines;
};

/// `recorded`: the document's curve, or what is seen of its series. `lines`: how many of the
/// largest live storages are listed.
ReadoutContent readoutAt(const Document& document, const StepCurve& recorded,
                         const PlanPointer& plan, core::Nanoseconds time, std::size_t lines = 7);

class Readout : public QCPLayerable {
public:
    Readout(QCustomPlot* plot, QCPAxis* time);
    void show(std::optional<ReadoutContent> content) { content_ = std::move(content); }
    const std::optional<ReadoutContent>& content() const { return content_; }
    /// Storages that a box of this height can list; it covers no lanes below the curve.
    static std::size_t linesWithin(int height);

protected:
    void applyDefaultAntialiasingHint(QCPPainter* painter) const override;
    void draw(QCPPainter* painter) override;

private:
    QCPAxis* time_;
    std::optional<ReadoutContent> content_;
};

}  // namespace hw::viewer
