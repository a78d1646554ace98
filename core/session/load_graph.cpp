// SPDX-License-Identifier: MIT
// A step of a session becomes a TrainingGraph.
#include <algorithm>
#include <cstdlib>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "core/base/utf8.h"
#include "core/graph/unseen_ops.h"
#include "core/session/access.h"
#include "core/session/circles.h"
#include "core/session/session_error.h"
#include "core/session/step_environment.h"
#include "core/session/step_rows.h"

namespace hw::core {
namespace {

constexpr std::size_t kStepsPerMedian = 5;
constexpr std::size_t kNearestSteps = 16;  // among which these are looked for

class GraphLoader {
public:
    /// `steps`: all of the session.
    GraphLoader(Database& database, const StepRow& step, const std::vector<StepRow>& steps,
                CostSet costs)
        : database_(database),
          step_(step),
          steps_(steps),
          // Arguments alone tell of tensors without plain memory, and only where the session says
          // that it lacks something.
          rows_(database, step,
                Statement(database, "SELECT 1 FROM gaps LIMIT 1").step() ? OpDetail::Everything
                                                                         : OpDetail::Edges) {
        graph_.costs = costs;
        graph_.sessionStep = step.id;
    }

    TrainingGraph load() {
        loadLayers();
        loadStorages();
        loadOps();
        if (graph_.costs == CostSet::Captured) takeMedianTimes();
        loadFinalTensors();
        markWrittenUnseen();
        orderEvents();
        return std::move(graph_);
    }

private:
    void loadLayers() {
        Statement process(database_, "SELECT framework FROM processes ORDER BY id");
        if (process.step()) graph_.framework = process.text(0);
        Statement from(database_, "SELECT id, path, type, parent FROM layers ORDER BY id");
        std::vector<std::pair<std::int64_t, std::optional<std::int64_t>>> rows;  // id, parent
        while (from.step()) {
            layerOf_[from.integer(0)] = static_cast<LayerIndex>(graph_.layers.size());
            graph_.layers.push_back({shownName(from.text(1)), shownName(from.text(2)), kNone});
            rows.emplace_back(from.integer(0), from.optionalInteger(3));
        }
        requireNoCircle(
            rows, "its layers", [](const auto& row) { return row.first; },
            [](const auto& row) { return row.second; });
        for (std::size_t i = 0; i < rows.size(); ++i)
            graph_.layers[i].parent = layer(rows[i].second);
    }

    // Everything alive in the step: what was there before it is a constant of the step, whoever
    // made it.
    void loadStorages() {
        for (const StorageRow& row : rows_.storages()) {
            const auto index = static_cast<StorageIndex>(graph_.storages.size());
            Storage& storage = graph_.storages.emplace_back();
            storage.sessionId = row.id;
            storage.bytes = row.bytes;
            storage.category = row.category;
            storage.layer = layer(row.layer);
            storageOf_[storage.sessionId] = index;
            const std::int64_t allocated = std::max(row.allocSeq, step_.firstSeq);
            const bool constant = !row.creator || row.allocSeq < step_.firstSeq;
            if (constant) ordered_.push_back({allocated, 0, {Event::Kind::Constant, index}});
            if (row.freeSeq && *row.freeSeq < step_.endSeq)
                ordered_.push_back({*row.freeSeq, 1, {Event::Kind::Release, index}});
            else
                aliveAtEnd_.push_back(index);
        }
    }

    void loadOps() {
        for (const OpRow& row : rows_.takeOps()) {
            const auto index = static_cast<OpIndex>(graph_.ops.size());
            ordered_.push_back({row.seq, 2, {Event::Kind::Compute, index}});
            Op op;
            op.sessionId = row.id;
            op.name = row.overload.empty() ? row.name : row.name + "." + row.overload;
            op.phase = row.phase;
            op.layer = layer(row.layer);
            op.random = row.random;
            op.opaque = row.args.find("{\"opaque\":\"Tensor\"}") != std::string::npos;
            const bool measured = graph_.costs == CostSet::Measured && row.measuredNs;
            op.time = measured ? Nanoseconds(*row.measuredNs) : costOf(row);
            op.workspace = measured ? Bytes(row.measuredWorkspace) : row.workspace;
            for (const OpRow::Input& input : row.inputs) {
                const TensorIndex t = tensor(input.tensor);
                op.inputs.push_back({t, relative(graph_.storageOf(t), input.version)});
            }
            for (const OpRow::Write& write : row.writes) {
                const StorageIndex s = storage(write.storage);
                op.writes.push_back({s, relative(s, write.versionBefore)});
            }
            for (const OpRow::Output& output : row.outputs) {
                const TensorIndex t = tensor(output.tensor);
                if (output.makesStorage) versionBase_.emplace(graph_.storageOf(t), 0);
                op.outputs.push_back({t, output.makesStorage});
            }
            graph_.ops.push_back(std::move(op));
        }
    }

    static Nanoseconds costOf(const OpRow& row) {
        return row.deviceNs ? Nanoseconds(*row.deviceNs) : row.duration;
    }

    /// What else the machine did falls on one step or another: an op has its median time of the
    /// steps that ran the same ops, of the nearest few of these.
    void takeMedianTimes() {
        std::vector<const StepRow*> others;
        for (const StepRow& row : steps_)
            if (row.id != step_.id && row.process == step_.process) others.push_back(&row);
        std::sort(others.begin(), others.end(), [&](const StepRow* a, const StepRow* b) {
            return std::abs(a->id - step_.id) < std::abs(b->id - step_.id);
        });
        others.resize(std::min(others.size(), kNearestSteps));
        std::vector<std::vector<Nanoseconds>> times;
        for (std::size_t i = 0; i < others.size() && times.size() + 1 < kStepsPerMedian; ++i)
            if (auto same = timesIfSameOps(*others[i]); !same.empty())
                times.push_back(std::move(same));
        std::vector<Nanoseconds> each;
        for (std::size_t i = 0; i < graph_.ops.size() && !times.empty(); ++i) {
            each.assign(1, graph_.ops[i].time);
            for (const auto& step : times) each.push_back(step[i]);
            const auto middle = each.begin() + static_cast<std::ptrdiff_t>((each.size() - 1) / 2);
            std::nth_element(each.begin(), middle, each.end());
            graph_.ops[i].time = *middle;
        }
    }

    std::vector<Nanoseconds> timesIfSameOps(const StepRow& other) const {
        try {
            std::vector<Nanoseconds> times;
            const std::vector<OpRow> ops = readOps(database_, other.id, OpDetail::Spans);
            const bool same = std::equal(ops.begin(), ops.end(), graph_.ops.begin(),
                                         graph_.ops.end(), [](const OpRow& row, const Op& op) {
                                             return isNamed(op.name, row.name, row.overload);
                                         });
            for (const OpRow& row : ops) times.push_back(costOf(row));
            return same ? times : std::vector<Nanoseconds>();
        } catch (const DamagedStep&) {
            return {};  // it is named to those who ask for it
        }
    }

    static bool isNamed(const std::string& full, const std::string& name,
                        const std::string& overload) {
        return full == (overload.empty() ? name : name + "." + overload);
    }

    void loadFinalTensors() {
        std::vector<bool> covered(graph_.storages.size(), false);
        Statement from(database_,
                       "SELECT tensor FROM final_tensors WHERE step = ? ORDER BY position");
        for (from.bind(1, step_.id); from.step();) {
            const TensorIndex t = tensor(from.integer(0));
            graph_.finalTensors.push_back(t);
            covered[graph_.storageOf(t)] = true;
        }
        // A storage without any tensor of this step still takes its bytes; it is held by one
        // tensor.
        std::vector<TensorIndex> first(graph_.storages.size(), kNone);
        for (TensorIndex t = 0; t < static_cast<TensorIndex>(graph_.tensors.size()); ++t)
            if (first[graph_.storageOf(t)] == kNone) first[graph_.storageOf(t)] = t;
        for (StorageIndex s = 0; s < static_cast<StorageIndex>(first.size()); ++s)
            if (first[s] == kNone) {
                first[s] = static_cast<TensorIndex>(graph_.tensors.size());
                graph_.tensors.push_back({s, kNone, kNone});
            }
        for (const StorageIndex s : aliveAtEnd_)
            if (!covered[s]) graph_.finalTensors.push_back(first[s]);
    }

    void orderEvents() {
        std::stable_sort(ordered_.begin(), ordered_.end(), [](const Ordered& a, const Ordered& b) {
            return std::tie(a.seq, a.rank) < std::tie(b.seq, b.rank);
        });
        for (const Ordered& item : ordered_) graph_.events.push_back(item.event);
    }

    LayerIndex layer(const std::optional<std::int64_t>& id) const {
        const auto at = id ? layerOf_.find(*id) : layerOf_.end();
        return at == layerOf_.end() ? kNone : at->second;
    }

    /// The recording has seen that they were filled by code that calls no op.
    void markWrittenUnseen() {
        const StepEnvironment environment = stepEnvironment(step_);
        const auto& ids = environment.writtenUnseen;  // as the process counts
        if (ids.empty()) return;
        for (const auto& [id, s] : storageOf_) {
            if (std::find(ids.begin(), ids.end(), id % kIdsOfProcess) == ids.end()) continue;
            Storage& storage = graph_.storages[s];
            (environment.stableSources ? storage.filledUnseen : storage.writtenUnseen) = true;
        }
    }

    StorageIndex storage(std::int64_t id) const {
        const auto at = storageOf_.find(id);
        if (at == storageOf_.end())
            throw DatabaseError{
                0, "storage " + std::to_string(id) + " is used in a step in which it is not alive"};
        return at->second;
    }

    // Tensors are numbered in the order in which the step refers to them.
    TensorIndex tensor(std::int64_t id) {
        const auto [at, isNew] =
            tensorOf_.try_emplace(id, static_cast<TensorIndex>(graph_.tensors.size()));
        if (isNew) {
            const TensorRow* row = rows_.tensor(id);
            if (row == nullptr)
                throw DatabaseError{0,
                                    "tensor " + std::to_string(id) + " is used, but not described"};
            const StorageIndex s = storage(row->storage);
            if (beginsWith(row->dtype, "qint") || beginsWith(row->dtype, "quint"))
                graph_.storages[s].quantized = true;
            graph_.tensors.push_back({s, kNone, id});
        }
        return at->second;
    }

    // Versions count from 0 at the start of the step: the first one that a constant shows is its
    // base.
    std::int32_t relative(StorageIndex s, std::int64_t version) {
        return static_cast<std::int32_t>(version -
                                         versionBase_.try_emplace(s, version).first->second);
    }

    struct Ordered {
        std::int64_t seq;
        int rank;  // at the same seq constants come first, then releases, then the op
        Event event;
    };

    Database& database_;
    const StepRow& step_;
    const std::vector<StepRow>& steps_;
    StepRows rows_;
    TrainingGraph graph_;
    std::unordered_map<std::int64_t, LayerIndex> layerOf_;
    std::unordered_map<std::int64_t, StorageIndex> storageOf_;
    std::unordered_map<std::int64_t, TensorIndex> tensorOf_;
    std::unordered_map<StorageIndex, std::int64_t> versionBase_;
    std::vector<StorageIndex> aliveAtEnd_;
    std::vector<Ordered> ordered_;
};

}  // namespace

Result<TrainingGraph> loadGraph(const Session& session, std::int64_t step,
                                std::optional<CostSet> costs) {
    auto steps = session.steps();
    if (!steps) return steps.error();
    const auto row =
        std::find_if(steps->begin(), steps->end(), [&](const StepRow& s) { return s.id == step; });
    if (row == steps->end())
        return badInput("session '" + session.path() + "' has no step " + std::to_string(step),
                        steps->empty() ? "it holds no complete step"
                                       : "its steps are " + std::to_string(steps->front().id) +
                                             " to " + std::to_string(steps->back().id));
    if (!costs) costs = session.hasMeasuredCosts(step) ? CostSet::Measured : CostSet::Captured;
    try {
        TrainingGraph graph = GraphLoader(databaseOf(session), *row, *steps, *costs).load();
        const auto importedFrom = session.meta("source");
        graph.recorded = graph.framework == "pytorch" && importedFrom && importedFrom->empty();
        if (const std::string wrong = graph.finish(); !wrong.empty())
            return badInput(
                "session '" + session.path() + "', step " + std::to_string(step) + ": " + wrong,
                "the recording contradicts itself; record again");
        if (graph.ops.empty())
            return badInput(
                "session '" + session.path() + "', step " + std::to_string(step) + " holds no ops",
                "planners need the ops of a step: record one with 'highwater record'");
        return graph;
    } catch (const DatabaseError& error) {
        return sessionError(session.path(), "reading step " + std::to_string(step), error);
    }
}

}  // namespace hw::core
