// SPDX-License-Identifier: GPL-3.0-or-later
// A plan, or the session that it is for, as a file of another tool.
#pragma once

#include <QProcess>
#include <QStringList>
#include <QTemporaryDir>
#include <memory>

#include "viewer/models/document.h"

namespace hw::viewer {

/// A form in which a plan can be written out.
struct ExportKind {
    const char* title;   // for the eye, through viewText()
    const char* ending;  // by which it is told from the others
    const char* format;  // of `highwater export --to`; empty: the plan itself
    bool needsPlan;
};
const std::vector<ExportKind>& exportKinds();
/// The one that a file of this name is; a plan where no ending is known.
const ExportKind& exportKindOf(const QString& path);
/// "Plans (*.plan.json);;…", as a file dialog takes it.
QString exportFilter();

class PlanExport : public QObject {
    Q_OBJECT
public:
    explicit PlanExport(QObject* parent);
    ~PlanExport() override;

    /// Writes `path` in the form of its ending, in the background where that takes the tool.
    void write(const Document& document, const PlanPointer& plan, const QString& path);

signals:
    void told(const QString& what);
    void failed(const QString& what, const QString& hint);

private:
    void ended(int exitCode, QProcess::ExitStatus how);

    QProcess tool_;
    std::unique_ptr<QTemporaryDir> folder_;  // of the plan that the tool reads
    QString path_;
};

}  // namespace hw::viewer
