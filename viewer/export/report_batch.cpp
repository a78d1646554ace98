// SPDX-License-Identifier: GPL-3.0-or-later
#include "viewer/export/report_batch.h"

#include "viewer/export/report_text.h"
#include "viewer/models/batch_model.h"

namespace hw::viewer {
namespace {

using reports::tr;

}  // namespace

ReportSection batchSection(const BatchResults& results) {
    ReportSection section{tr("How large a batch fits"), {}, {}, {}, {}};
    QStringList sizes;
    for (const std::int64_t size : results.family->families.usual.sizes())
        sizes << QString::number(size);
    section.paragraphs << tr("From recordings of the program at batches of %1; everything beyond "
                             "them is predicted. The budget is the recorded peak at the largest "
                             "of them, %2.")
                              .arg(sizes.join(tr(" and ")),
                                   SizeUnit::fitting(results.budget).text(results.budget));
    section.caption =
        tr("Left: the largest batch of each planner over the budget. Right: items a second over "
           "the batch within that budget, the most ringed: it need not be at the largest batch, as "
           "recomputation takes time.");
    BatchModel model;
    if (const BatchStudy* const study = results.atBudget())
        model.setStudy(*study, results.family->families.usual.sizes().back());
    section.tables.push_back(tableOf(model));
    return section;
}

}  // namespace hw::viewer
