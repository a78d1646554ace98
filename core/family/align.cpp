// SPDX-License-Identifier: MIT
#include "core/family/align.h"

#include <algorithm>

namespace hw::core {
namespace {

std::string opText(const TrainingGraph& graph, OpIndex op) {
    std::string text = graph.ops[op].name;
    const LayerIndex layer = graph.ops[op].layer;
    return layer == kNone ? text : text + " of " + graph.layers[layer].path;
}

/// Ops that began before a storage came and before it went; one that stays goes after all.
struct Lifetime {
    OpIndex from = kNone, to = kNone;
    bool operator==(const Lifetime&) const = default;
};

std::vector<Lifetime> lifetimes(const TrainingGraph& graph) {
    std::vector<Lifetime> lives(graph.storages.size());
    OpIndex begun = 0;
    for (const Event& event : graph.events) {
        if (event.kind == Event::Kind::Constant) lives[event.index].from = begun;
        if (event.kind == Event::Kind::Release) lives[event.index].to = begun;
        if (event.kind != Event::Kind::Compute) continue;
        for (const OpOutput& output : graph.ops[event.index].outputs)
            if (output.makesStorage) lives[graph.storageOf(output.tensor)].from = begun;
        ++begun;
    }
    return lives;
}

class Aligner {
public:
    Aligner(const NamedGraph& first, const NamedGraph& second)
        : first_(first),
          second_(second),
          tensorBack_(second.graph.tensors.size(), kNone),
          storageBack_(second.graph.storages.size(), kNone) {
        made_.tensors.assign(first.graph.tensors.size(), kNone);
        made_.storages.assign(first.graph.storages.size(), kNone);
    }

    Result<Alignment> run() {
        HW_TRY(matchOps());
        matchUntouched();
        HW_TRY(compareLifetimes());
        HW_TRY(compareParameters());
        HW_TRY(compareFinalTensors());
        return std::move(made_);
    }

private:
    Error differ(const std::string& what) const {
        return badInput("'" + first_.name + "' and '" + second_.name +
                            "' are not records of the same step: " + what,
                        "record one program twice with nothing but its batch changed, and the "
                        "same number of steps");
    }
    Error opDiffers(OpIndex op, const std::string& how) const {
        return differ("op " + std::to_string(op) + " (" + opText(first_.graph, op) + ") " + how +
                      " in the one than in the other");
    }

    Status matchOps() {
        const std::vector<Op>&a = first_.graph.ops, &b = second_.graph.ops;
        for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
            const auto at = static_cast<OpIndex>(i);
            if (a[i].name != b[i].name)
                return differ("op " + std::to_string(i) + " is " + opText(first_.graph, at) +
                              " in the one and " + opText(second_.graph, at) + " in the other");
            if (a[i].phase != b[i].phase) return opDiffers(at, "runs in another phase");
            if (!sameInputs(a[i], b[i])) return opDiffers(at, "reads other tensors");
            if (!sameOutputs(a[i], b[i])) return opDiffers(at, "makes other tensors");
            if (!sameWrites(a[i], b[i])) return opDiffers(at, "writes other storages");
        }
        if (a.size() == b.size()) return {};
        const bool longer = a.size() > b.size();
        const NamedGraph& more = longer ? first_ : second_;
        const std::size_t fewer = std::min(a.size(), b.size());
        return differ("op " + std::to_string(fewer) + " is " +
                      opText(more.graph, static_cast<OpIndex>(fewer)) + " in '" + more.name +
                      "', and the other one ends before it");
    }

    // One to one: what has no partner yet gets one, if the other has none either.
    static bool pair(std::vector<std::int32_t>& there, std::vector<std::int32_t>& back,
                     std::int32_t a, std::int32_t b) {
        if (there[a] == kNone && back[b] == kNone) there[a] = b, back[b] = a;
        return there[a] == b && back[b] == a;
    }
    bool pairStorages(StorageIndex a, StorageIndex b) {
        return pair(made_.storages, storageBack_, a, b);
    }
    bool pairTensors(TensorIndex a, TensorIndex b) {
        return pair(made_.tensors, tensorBack_, a, b) &&
               pairStorages(first_.graph.storageOf(a), second_.graph.storageOf(b));
    }

    bool sameInputs(const Op& a, const Op& b) {
        return std::equal(a.inputs.begin(), a.inputs.end(), b.inputs.begin(), b.inputs.end(),
                          [&](const Use& x, const Use& y) {
                              return x.version == y.version && pairTensors(x.tensor, y.tensor);
                          });
    }
    bool sameOutputs(const Op& a, const Op& b) {
        return std::equal(a.outputs.begin(), a.outputs.end(), b.outputs.begin(), b.outputs.end(),
                          [&](const OpOutput& x, const OpOutput& y) {
                              return x.makesStorage == y.makesStorage &&
                                     pairTensors(x.tensor, y.tensor);
                          });
    }
    bool sameWrites(const Op& a, const Op& b) {
        // In the order of their storages in either graph, which need not be the same.
        return a.writes.size() == b.writes.size() &&
               std::all_of(a.writes.begin(), a.writes.end(), [&](const Write& x) {
                   return std::any_of(b.writes.begin(), b.writes.end(), [&](const Write& y) {
                       return x.versionBefore == y.versionBefore &&
                              made_.storages[x.storage] == y.storage;
                   });
               });
    }

    // Both lists are in the order in which storages and tensors come into being.
    void matchUntouched() {
        const auto inOrder = [](std::vector<std::int32_t>& there, std::vector<std::int32_t>& back,
                                auto&& fits) {
            std::size_t b = 0;
            for (std::size_t a = 0; a < there.size(); ++a) {
                if (there[a] != kNone) continue;
                while (b < back.size() && back[b] != kNone) ++b;
                if (b == back.size()) return;
                const auto x = static_cast<std::int32_t>(a), y = static_cast<std::int32_t>(b);
                if (fits(x, y)) there[a] = y, back[b] = x;
            }
        };
        inOrder(made_.storages, storageBack_, [](auto, auto) { return true; });
        inOrder(made_.tensors, tensorBack_, [&](TensorIndex a, TensorIndex b) {
            return made_.storages[first_.graph.storageOf(a)] == second_.graph.storageOf(b);
        });
    }

    std::string storageText(StorageIndex s) const {
        const Storage& storage = first_.graph.storages[s];
        const std::string category(categoryName(storage.category));
        if (storage.isConstant())
            return "a constant (" + category +
                   (storage.layer == kNone ? ""
                                           : " of " + first_.graph.layers[storage.layer].path) +
                   ")";
        return "what op " + std::to_string(storage.creator) + " (" +
               opText(first_.graph, storage.creator) + ") makes";
    }

    Status compareLifetimes() const {
        if (first_.graph.storages.size() != second_.graph.storages.size())
            return differ("one holds " + std::to_string(first_.graph.storages.size()) +
                          " storages, the other " + std::to_string(second_.graph.storages.size()));
        const auto a = lifetimes(first_.graph), b = lifetimes(second_.graph);
        for (std::size_t s = 0; s < a.size(); ++s)
            if (a[s] != b[made_.storages[s]])
                return differ(storageText(static_cast<StorageIndex>(s)) +
                              " is not held between the same ops");
        return {};
    }

    Status compareParameters() const {
        for (StorageIndex s = 0; s < static_cast<StorageIndex>(made_.storages.size()); ++s) {
            const Storage &a = first_.graph.storages[s],
                          &b = second_.graph.storages[made_.storages[s]];
            if ((a.isParameter() || a.category == Category::OptimizerState) && a.bytes != b.bytes)
                return differ(storageText(s) + " takes " + std::to_string(a.bytes.count()) +
                              " bytes in the one and " + std::to_string(b.bytes.count()) +
                              " in the other");
        }
        return {};
    }

    // In whatever order the program held them.
    Status compareFinalTensors() const {
        std::vector<TensorIndex> a, b = second_.graph.finalTensors;
        for (const TensorIndex tensor : first_.graph.finalTensors)
            a.push_back(made_.tensors[tensor]);
        std::sort(a.begin(), a.end());
        std::sort(b.begin(), b.end());
        if (a != b) return differ("other tensors are alive at the end");
        return {};
    }

    const NamedGraph first_, second_;
    Alignment made_;
    std::vector<TensorIndex> tensorBack_;    // from the second graph to the first one
    std::vector<StorageIndex> storageBack_;  // likewise
};

}  // namespace

Result<Alignment> align(const NamedGraph& first, const NamedGraph& second) {
    return Aligner(first, second).run();
}

}  // namespace hw::core
