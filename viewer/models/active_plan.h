// SPDX-License-Identifier: GPL-3.0-or-later
// The plan that is drawn over the recorded curve, and what it does in another way.
#pragma once

#include <QObject>

#include "viewer/models/document.h"
#include "viewer/models/plan_reasons.h"
#include "viewer/models/task_queue.h"

namespace hw::viewer {

class ActivePlan : public QObject {
    Q_OBJECT
public:
    explicit ActivePlan(QObject* parent = nullptr) : QObject(parent) {}

    /// Without a plan of it; no signal says so.
    void setDocument(DocumentPointer document);
    void set(const PlanPointer& plan);

    /// May be null, or the baseline's; see isPlanned().
    const PlanPointer& plan() const { return plan_; }
    /// What it does in another way than the recorded step; null without a plan. Of a large step
    /// this is found in the background, and null until changesFound().
    const PlanChanges& changes() const;
    InspectedPlan inspected() const;
    /// The same as changes(), before it returns; for pictures.
    const PlanChanges& changesNow() const;

signals:
    void planChanged();
    void changesFound();

private:
    DocumentPointer document_;
    PlanPointer plan_;
    mutable PlanChanges changes_;  // of a small step found when they are read
    TaskQueue queue_;              // last: it stops before what its tasks deliver into goes away
};

}  // namespace hw::viewer
