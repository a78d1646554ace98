// SPDX-License-Identifier: GPL-3.0-or-later
// A plan, or the session that it is for, as a file of another tool.
#pragma once

#include <QObject>

#include "viewer/models/document.h"
#include "viewer/models/task_queue.h"

namespace hw::viewer {

/// A form in which a plan can be written out.
struct ExportKind {
    enum class Form { Plan, TorchPolicy, Layers, Perfetto, Csv };

    const char* title;   // for the eye, through viewText()
    const char* ending;  // by which it is told from the others
    Form form;
};
const std::vector<ExportKind>& exportKinds();
/// The one that a file of this name is; a plan where no ending is known.
const ExportKind& exportKindOf(const QString& path);
/// "Plans (*.plan.json);;…", as a file dialog takes it.
QString exportFilter();

class PlanExport : public QObject {
    Q_OBJECT
public:
    explicit PlanExport(QObject* parent) : QObject(parent) {}

    /// Writes `path` in the form of its ending, in the background.
    void write(const DocumentPointer& document, const PlanPointer& plan, const QString& path);

signals:
    void told(const QString& what);
    void failed(const QString& what, const QString& hint);

private:
    void ended(const core::Status& done, const QString& path);

    TaskQueue queue_;  // last: it stops before the rest goes away
};

}  // namespace hw::viewer
