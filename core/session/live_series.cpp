// SPDX-License-Identifier: MIT
#include "core/session/live_series.h"

#include <map>

#include "core/session/series_writer.h"

namespace hw::core {

void writeLiveSeries(Database& database, const StepRow& step) {
    struct Change {
        std::int64_t live = 0, workspace = 0;
    };
    std::map<std::int64_t, Change> changes;
    std::int64_t live = 0;
    // Found by their release (hence the plus): what earlier steps have let go of is many times
    // more.
    Statement storages(database,
                       "SELECT bytes, alloc_seq, free_seq FROM storages"
                       " WHERE free_seq IS NULL AND alloc_seq >= ?3 AND +alloc_seq < ?2"
                       " UNION ALL SELECT bytes, alloc_seq, free_seq FROM storages"
                       " WHERE free_seq >= ?1 AND +alloc_seq >= ?3 AND +alloc_seq < ?2");
    storages.bind(1, step.firstSeq).bind(2, step.endSeq).bind(3, firstSeqOfProcess(step.firstSeq));
    while (storages.step()) {
        const std::int64_t bytes = storages.integer(0);
        if (storages.integer(1) < step.firstSeq)
            live += bytes;
        else
            changes[storages.integer(1)].live += bytes;
        if (const auto freed = storages.optionalInteger(2); freed && *freed < step.endSeq)
            changes[*freed].live -= bytes;
    }
    Statement ops(database, "SELECT seq, workspace_bytes FROM ops WHERE seq >= ? AND seq < ?");
    for (ops.bind(1, step.firstSeq).bind(2, step.endSeq); ops.step();)
        changes[ops.integer(0)].workspace = ops.integer(1);
    if (changes.empty()) return;

    SeriesKey key;
    key.name = "step " + std::to_string(step.id) + " live";
    key.axis = SeriesAxis::Seq;
    key.step = step.id;
    SeriesWriter writer(database, key);
    writer.append(step.firstSeq, live);
    for (const auto& [seq, change] : changes) {
        live += change.live;
        writer.append(seq, live + change.workspace);
    }
    writer.flush();
}

}  // namespace hw::core
