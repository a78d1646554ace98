// SPDX-License-Identifier: MIT
#include "core/session/live_series.h"

#include <algorithm>
#include <vector>

#include "core/session/series_writer.h"

namespace hw::core {
namespace {

/// What becomes of the live bytes of a step at its seqs.
class LiveBytes {
public:
    explicit LiveBytes(const StepRow& step) : step_(step) {}

    void storage(std::int64_t bytes, std::int64_t allocSeq, std::optional<std::int64_t> freeSeq) {
        if (allocSeq < step_.firstSeq)
            atBegin_ += bytes;
        else
            changes_.push_back({allocSeq, bytes, 0});
        if (freeSeq && *freeSeq < step_.endSeq) changes_.push_back({*freeSeq, -bytes, 0});
    }
    void op(std::int64_t seq, std::int64_t workspace) { changes_.push_back({seq, 0, workspace}); }

    void write(Database& database) {
        if (changes_.empty()) return;
        SeriesKey key;
        key.name = "step " + std::to_string(step_.id) + " live";
        key.axis = SeriesAxis::Seq;
        key.step = step_.id;
        SeriesWriter writer(database, key);
        std::int64_t live = atBegin_;
        writer.append(step_.firstSeq, live);
        std::sort(changes_.begin(), changes_.end(),
                  [](const Change& a, const Change& b) { return a.seq < b.seq; });
        for (auto at = changes_.begin(); at != changes_.end();) {
            const std::int64_t seq = at->seq;
            std::int64_t workspace = 0;
            for (; at != changes_.end() && at->seq == seq; ++at)
                live += at->live, workspace += at->workspace;
            writer.append(seq, live + workspace);
        }
        writer.flush();
    }

private:
    struct Change {
        std::int64_t seq, live, workspace;
    };
    const StepRow& step_;
    std::int64_t atBegin_ = 0;
    std::vector<Change> changes_;
};

}  // namespace

void writeLiveSeries(Database& database, const StepRow& step, const StepContents& packed) {
    LiveBytes bytes(step);
    // Found by their release (hence the plus): what earlier steps have let go of is many times
    // more.
    Statement& storages = database.kept(
        "SELECT bytes, alloc_seq, free_seq FROM storages"
        " WHERE free_seq IS NULL AND alloc_seq >= ?3 AND +alloc_seq < ?2"
        " UNION ALL SELECT bytes, alloc_seq, free_seq FROM storages"
        " WHERE free_seq >= ?1 AND +alloc_seq >= ?3 AND +alloc_seq < ?2");
    storages.bind(1, step.firstSeq).bind(2, step.endSeq).bind(3, firstSeqOfProcess(step.firstSeq));
    while (storages.step())
        bytes.storage(storages.integer(0), storages.integer(1), storages.optionalInteger(2));
    Statement& ops =
        database.kept("SELECT seq, workspace_bytes FROM ops WHERE seq >= ? AND seq < ?");
    for (ops.bind(1, step.firstSeq).bind(2, step.endSeq); ops.step();)
        bytes.op(ops.integer(0), ops.integer(1));
    for (const StorageRow& row : packed.storages)
        bytes.storage(row.bytes.count(), row.allocSeq, row.freeSeq);
    for (const OpRow& row : packed.ops) bytes.op(row.seq, row.workspace.count());
    bytes.write(database);
}

}  // namespace hw::core
