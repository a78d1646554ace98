// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/panels/plan_export.h"

#include <algorithm>

#include "core/base/file.h"
#include "core/export/csv.h"
#include "core/export/perfetto.h"
#include "core/import/import.h"
#include "planners/checkpoints/export_plan.h"
#include "viewer/panels/panel_kind.h"

namespace hw::viewer {

const std::vector<ExportKind>& exportKinds() {
    using Form = ExportKind::Form;
    static const std::vector<ExportKind> kinds{
        {"Plan of Highwater", ".plan.json", Form::Plan},
        {"PyTorch: checkpoints as a Python module", ".py", Form::TorchPolicy},
        {"Layers with what the plan recomputes", ".layers.csv", Form::Layers},
        {"Perfetto trace of the session", ".pftrace", Form::Perfetto},
        {"Tables of the session, a folder of CSV files", ".tables", Form::Csv},
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

namespace {

core::Status exportTo(const QString& path, const ExportKind& kind, const Document& document,
                      const PlanEntry& plan) {
    const std::string file = path.toStdString();
    switch (kind.form) {
        case ExportKind::Form::Plan:
            return savePlan(plan, file);
        case ExportKind::Form::TorchPolicy: {
            const auto policy = planners::exportPolicy(document.graph, planOf(plan));
            return policy ? core::writeFileAtomically(file, policy->text) : policy.error();
        }
        case ExportKind::Form::Layers:
            return core::writeFileAtomically(file,
                                             planners::exportLayers(document.graph, planOf(plan)));
        case ExportKind::Form::Perfetto:
        case ExportKind::Form::Csv: {
            const auto session = core::openAny(document.path);
            if (!session) return session.error();
            return kind.form == ExportKind::Form::Csv ? core::exportCsv(*session, file)
                                                      : core::exportPerfetto(*session, file);
        }
    }
    return {};
}

}  // namespace

void PlanExport::write(const DocumentPointer& document, const PlanPointer& plan,
                       const QString& path) {
    emit told(tr("writing %1…").arg(path));
    queue_.submit([this, document, plan, path](const TaskQueue::Cancelled&) {
        const core::Status done = exportTo(path, exportKindOf(path), *document, *plan);
        return TaskQueue::Delivery([this, done, path] { ended(done, path); });
    });
}

void PlanExport::ended(const core::Status& done, const QString& path) {
    if (done) return emit told(tr("saved %1").arg(path));
    emit told({});
    emit failed(toQString(done.error().what), toQString(done.error().hint));
}

}  // namespace hw::viewer
