// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/plan_export.h"

#include <algorithm>

#include "viewer/models/tool.h"
#include "viewer/panels/panel_kind.h"

namespace hw::viewer {

const std::vector<ExportKind>& exportKinds() {
    static const std::vector<ExportKind> kinds{
        {"Plan of Highwater", ".plan.json", "", true},
        {"PyTorch: checkpoints as a Python module", ".py", "torch-policy", true},
        {"Layers with what the plan recomputes", ".layers.csv", "layers", true},
        {"Perfetto trace of the session", ".pftrace", "perfetto", false},
        {"Tables of the session, a folder of CSV files", ".tables", "csv", false},
    };
    return kinds;
}

const ExportKind& exportKindOf(const QString& path) {
    const auto& kinds = exportKinds();
    const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const ExportKind& kind) {
        return path.endsWith(QLatin1String(kind.ending), Qt::CaseInsensitive);
    });
    return found == kinds.end() ? kinds.front() : *found;
}

QString exportFilter() {
    QStringList filters;
    for (const ExportKind& kind : exportKinds())
        filters << QStringLiteral("%1 (*%2)").arg(viewText(kind.title), QLatin1String(kind.ending));
    return filters.join(QStringLiteral(";;"));
}

PlanExport::PlanExport(QObject* parent) : QObject(parent) {
    tool_.setStandardOutputFile(QProcess::nullDevice());
    connect(&tool_, &QProcess::finished, this, &PlanExport::ended);
    connect(&tool_, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
        if (error == QProcess::FailedToStart)
            emit failed(tr("cannot start %1").arg(toolProgram()),
                        tr("the executable `highwater` belongs beside this program"));
    });
}

PlanExport::~PlanExport() {
    tool_.disconnect(this);
    if (tool_.state() == QProcess::NotRunning) return;
    tool_.kill();
    tool_.waitForFinished(1000);
}

void PlanExport::write(const Document& document, const PlanPointer& plan, const QString& path) {
    const ExportKind& kind = exportKindOf(path);
    if (tool_.state() != QProcess::NotRunning)
        return emit failed(tr("%1 is still being written").arg(path_), tr("wait for it"));
    folder_ = std::make_unique<QTemporaryDir>();
    const QString own =
        *kind.format == '\0' ? path : folder_->filePath(QStringLiteral("export.plan.json"));
    if (kind.needsPlan)
        if (core::Status saved = savePlan(*plan, own.toStdString()); !saved)
            return emit failed(toQString(saved.error().what), toQString(saved.error().hint));
    if (own == path) return emit told(tr("saved %1").arg(path));
    path_ = path;
    QStringList words{QStringLiteral("export"), QString::fromStdString(document.path),
                      QStringLiteral("--to"),   QLatin1String(kind.format),
                      QStringLiteral("-o"),     path};
    if (kind.needsPlan)
        words << QStringLiteral("--plan") << own << QStringLiteral("--step")
              << QString::number(document.step);
    emit told(tr("writing %1…").arg(path));
    tool_.start(toolProgram(), words, QIODevice::ReadOnly);
}

void PlanExport::ended(int exitCode, QProcess::ExitStatus how) {
    if (how == QProcess::NormalExit && exitCode == 0) return emit told(tr("saved %1").arg(path_));
    const ToolError error = toolError(QString::fromUtf8(tool_.readAllStandardError()));
    emit told({});
    emit failed(error.what.isEmpty() ? tr("%1 could not be written").arg(path_) : error.what,
                error.hint);
}

}  // namespace hw::viewer
