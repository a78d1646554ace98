// SPDX-License-Identifier: MIT
#include "core/family/predicted_session.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "core/family/load_family.h"

namespace hw::core {
namespace {

std::string listText(const std::vector<std::int64_t>& numbers) {
    std::string text;
    for (const std::int64_t n : numbers) text += (text.empty() ? "" : ",") + std::to_string(n);
    return "[" + text + "]";
}

/// The rows of the first session, changed to what they are at the size.
class Writer {
public:
    Writer(const Session& first, std::int64_t size, SessionWriter& out)
        : first_(first), size_(size), out_(out) {}

    Status begin() {
        const auto processes = first_.processes();
        if (!processes) return processes.error();
        for (const ProcessRow& row : *processes) HW_TRY(out_.insert(row));
        const auto layers = first_.layers();
        if (!layers) return layers.error();
        for (const LayerRow& row : *layers) HW_TRY(out_.insert(row));
        const auto tensors = first_.tensors();
        if (!tensors) return tensors.error();
        for (const TensorRow& row : *tensors) tensors_.emplace(row.id, row);
        return {};
    }

    Status write(const StepRow& step, const Family& family) {
        const TrainingGraph graph = family.graphAt(size_);
        HW_TRY(writeOps(step, graph));
        HW_TRY(writeStorages(step, graph));
        for (TensorIndex t = 0; t < static_cast<TensorIndex>(graph.tensors.size()); ++t)
            HW_TRY(writeTensor(graph, t, family.formAt(t, size_)));
        std::vector<std::int64_t> finals;
        for (const TensorIndex t : graph.finalTensors)
            if (graph.tensors[t].sessionId != kNone) finals.push_back(graph.tensors[t].sessionId);
        StepRow row = step;
        row.beginNs = begunNs_, row.endNs = nowNs_;
        row.allocatorBeginBytes.reset(), row.allocatorPeakBytes.reset();
        begunNs_ = nowNs_;
        return out_.insert(row, finals);
    }

private:
    Status writeOps(const StepRow& step, const TrainingGraph& graph) {
        auto ops = first_.ops(step.id);
        if (!ops) return ops.error();
        for (std::size_t i = 0; i < ops->size(); ++i) {
            OpRow& row = (*ops)[i];
            row.beginNs = nowNs_;
            row.duration = graph.ops[i].time;
            row.workspace = graph.ops[i].workspace;
            row.liveBytes.reset();
            row.args.clear();
            nowNs_ += row.duration.count();
            ops_.insert(row.id);
            HW_TRY(out_.insert(row));
        }
        return {};
    }

    // One that lives in several steps has been written with the first of them.
    Status writeStorages(const StepRow& step, const TrainingGraph& graph) {
        auto storages = first_.storages(step);
        if (!storages) return storages.error();
        for (std::size_t s = 0; s < storages->size(); ++s) {
            StorageRow& row = (*storages)[s];
            if (!storages_.insert(row.id).second) continue;
            row.bytes = graph.storages[s].bytes;
            row.address.reset();
            forgetUnwritten(row.creator);
            HW_TRY(out_.insert(row));
        }
        return {};
    }

    Status writeTensor(const TrainingGraph& graph, TensorIndex tensor, const TensorForm& form) {
        const auto known = tensors_.find(graph.tensors[tensor].sessionId);
        if (known == tensors_.end()) return {};
        TensorRow row = known->second;
        tensors_.erase(known);
        row.sizes = listText(form.sizes), row.strides = listText(form.strides);
        row.offset = form.offset;
        forgetUnwritten(row.creator);
        return out_.insert(row);
    }

    void forgetUnwritten(std::optional<std::int64_t>& creator) const {
        if (creator && ops_.count(*creator) == 0) creator.reset();
    }

    const Session& first_;
    std::int64_t size_;
    SessionWriter& out_;
    std::map<std::int64_t, TensorRow> tensors_;  // that are not written yet
    std::set<std::int64_t> ops_, storages_;      // that are
    std::int64_t begunNs_ = 0, nowNs_ = 0;
};

}  // namespace

Status writePredicted(const std::vector<Session>& sessions, std::optional<int> vary,
                      std::int64_t size, SessionWriter& out) {
    const Session& first = sessions.front();
    const auto kinds = loadKinds(sessions, vary);
    if (!kinds) return kinds.error();
    HW_TRY(out.begin());
    Writer writer(first, size, out);
    HW_TRY(writer.begin());
    std::string from;
    for (const Session& session : sessions) from += (from.empty() ? "" : "\n") + session.path();
    HW_TRY(out.setMeta(kPredictedSize, std::to_string(size)));
    HW_TRY(out.setMeta(kPredictedFrom, from));
    for (const auto& [step, family] : *kinds) {
        if (family) {
            HW_TRY(writer.write(step, *family));
            continue;
        }
        if (step.id == kinds->back().step.id) return family.error();
        HW_TRY(out.insert(GapRow{step.id,
                                 {},
                                 {},
                                 "step " + std::to_string(step.id),
                                 "not known at this size: " + family.error().what}));
    }
    return out.commit();
}

Result<std::optional<std::int64_t>> predictedSize(const Session& session) {
    const auto text = session.meta(kPredictedSize);
    if (!text) return text.error();
    if (text->empty()) return std::optional<std::int64_t>();
    std::int64_t size = 0;
    const auto [end, wrong] = std::from_chars(text->data(), text->data() + text->size(), size);
    if (wrong != std::errc() || end != text->data() + text->size())
        return badInput("session '" + session.path() + "': its size is '" + *text + "'",
                        "the file may be damaged; make it again with 'highwater fit -o'");
    return std::optional(size);
}

}  // namespace hw::core
