// SPDX-License-Identifier: GPL-3.0-or-later
// A filled step curve that stays fast with thousands of steps: on the screen it is drawn column by
// column of pixels, because filling one polygon of that many edges takes seconds.
#pragma once

#include <qcustomplot.h>

namespace hw::viewer {

/// Its brush is a plain opaque colour.
class AreaGraph : public QCPGraph {
    Q_OBJECT
public:
    AreaGraph(QCPAxis* key, QCPAxis* value) : QCPGraph(key, value) {}

    /// The graph that this one stands on, and the one on top of the stack; both have the same keys.
    /// Where several steps share a column, the one with the highest top is drawn, in all of them.
    void setStack(const QCPGraph* below, const QCPGraph* top) { below_ = below, top_ = top; }

protected:
    void draw(QCPPainter* painter) override;

private:
    const QCPGraph* below_ = nullptr;
    const QCPGraph* top_ = nullptr;
};

}  // namespace hw::viewer
