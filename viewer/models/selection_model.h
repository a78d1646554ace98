// SPDX-License-Identifier: GPL-3.0-or-later
// What is selected of the document that is shown, in every view at once.
#pragma once

#include <QObject>
#include <optional>

#include "viewer/models/document.h"
#include "viewer/models/selection.h"

namespace hw::viewer {

/// An op, a tensor or a layer, and a range of time. What is not in the document is not selected.
class SelectionModel : public QObject {
    Q_OBJECT
public:
    explicit SelectionModel(QObject* parent = nullptr) : QObject(parent) {}

    /// Nothing is selected of another document; no signal says so.
    void setDocument(DocumentPointer document);

    const Selection& current() const { return selection_; }
    core::OpIndex op() const { return selection_.op; }
    void selectOp(core::OpIndex op);
    void selectStorage(core::StorageIndex storage);
    void selectLayer(core::LayerIndex layer);
    void selectBlock(const BlockFacts& block);
    void select(const Target& target);
    /// One of this document's, as current() returned it.
    void select(const Selection& selection);
    /// The next op, or the one that is so many further; the first step is to the peak.
    void stepOp(int by);

    /// The stretch of time that is looked at; none: the whole step.
    const std::optional<TimeRange>& range() const { return range_; }
    void selectRange(std::optional<TimeRange> range);
    /// The range from the op where it began to the one that is so many further.
    void stretchRange(int by);

signals:
    void selectionChanged();
    void rangeChanged();

private:
    DocumentPointer document_;
    Selection selection_;
    std::optional<TimeRange> range_;
    core::OpIndex rangeFrom_ = core::kNone;  // where a range that is stretched began
};

}  // namespace hw::viewer
