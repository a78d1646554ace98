// SPDX-License-Identifier: MIT
#include "core/plan/implementations.h"

#include <algorithm>
#include <set>
#include <utility>

namespace hw::core {
namespace {

const Use* readOf(const TrainingGraph& graph, const Op& op, StorageIndex storage) {
    const auto at = std::find_if(op.inputs.begin(), op.inputs.end(), [&](const Use& use) {
        return graph.storageOf(use.tensor) == storage;
    });
    return at == op.inputs.end() ? nullptr : &*at;
}

// Why the output cannot take the storage that `taken` looks at; empty when it can.
std::string placeFault(const TrainingGraph& graph, const Implementation& one, TensorIndex taken) {
    const Op& op = graph.ops[one.op];
    const OpOutput& made = op.outputs[one.output];
    const StorageIndex into = graph.storageOf(taken);
    const auto onInto = [&](TensorIndex tensor) { return graph.storageOf(tensor) == into; };
    if (!made.makesStorage) return "takes a storage for an output that makes none";
    if (readOf(graph, op, into) == nullptr) return "takes a storage that the op does not read";
    if (graph.storages[into].isConstant()) return "would overwrite a constant";
    if (graph.storages[into].bytes < graph.storages[graph.storageOf(made.tensor)].bytes)
        return "takes a storage that is too small for the output";
    if (std::any_of(graph.finalTensors.begin(), graph.finalTensors.end(), onInto))
        return "would overwrite what must be there when the step ends";
    if (std::any_of(op.writes.begin(), op.writes.end(),
                    [&](const Write& write) { return write.storage == into; }))
        return "takes a storage that the op writes already";
    return {};
}

// Changes a copy of the graph, one chosen implementation after the other. First outputs move into
// inputs' storages, which renumbers versions; then reads are replaced by what is there by now.
class Applier {
public:
    explicit Applier(const TrainingGraph& graph) : original_(graph), graph_(graph) {}

    Result<TrainingGraph> apply(const std::vector<const Implementation*>& chosen) {
        for (const Implementation* one : chosen) {
            current_ = one;
            what_ = implementationFault(original_, *one);
            if (!what_.empty() || !setFigures(*one)) return problem();
        }
        for (const Implementation* one : chosen) {
            current_ = one;
            if (one->kind == ImplementationKind::InPlace && !takeStorage(*one)) return problem();
        }
        for (const Implementation* one : chosen) {
            current_ = one;
            if (one->backward != kNone && !replaceRead(*one)) return problem();
        }
        if (!touched_.empty()) placeReleases();
        if (changed_)
            if (const std::string wrong = graph_.finish(); !wrong.empty())
                return badInput(
                    "the chosen implementations contradict each other or the graph: " + wrong,
                    "correct the menu, or choose others");
        return std::move(graph_);
    }

private:
    Error problem() const {
        return badInput("implementation '" + current_->name + "' of op " +
                            std::to_string(current_->op) + " (" + original_.ops[current_->op].name +
                            ") " + what_,
                        "correct the menu, or choose another one");
    }
    bool fail(std::string what) {
        what_ = std::move(what);
        return false;
    }

    bool setFigures(const Implementation& one) {
        const auto setOnce = [&](OpIndex op, const auto& time, const auto& workspace) {
            if (!time && !workspace) return true;
            if (!figured_.insert(op).second) return false;
            if (time) graph_.ops[op].time = *time;
            if (workspace) graph_.ops[op].workspace = *workspace;
            return true;
        };
        if (!setOnce(one.op, one.time, one.workspace) ||
            (one.backward != kNone &&
             !setOnce(one.backward, one.backwardTime, one.backwardWorkspace)))
            return fail("sets figures that another one sets too");
        return true;
    }

    // The output's storage is the input's from now on: its tensors look at that one, and its
    // versions follow the one that the op reads.
    bool takeStorage(const Implementation& one) {
        const TensorIndex taken = original_.storages[one.takes].tensors.front();
        if (std::string fault = placeFault(graph_, one, taken); !fault.empty())
            return fail(std::move(fault));
        Op& op = graph_.ops[one.op];
        const StorageIndex from = graph_.storageOf(op.outputs[one.output].tensor);
        const StorageIndex into = graph_.storageOf(taken);
        const std::int32_t before = readOf(graph_, op, into)->version;
        moveTensors(from, into, before + 1);
        op.writes.push_back({into, before});
        op.outputs[one.output].makesStorage = false;
        graph_.storages[from].bytes = Bytes(0);
        touched_.insert({from, into});
        return changed_ = true;
    }

    void moveTensors(StorageIndex from, StorageIndex into, std::int32_t version) {
        for (Op& op : graph_.ops) {
            for (Use& use : op.inputs)
                if (graph_.storageOf(use.tensor) == from) use.version += version;
            for (Write& write : op.writes)
                if (write.storage == from) write = {into, write.versionBefore + version};
        }
        for (Tensor& tensor : graph_.tensors)
            if (tensor.storage == from) tensor.storage = into;
    }

    // What the gradient op reads in place of the storage.
    Use replacement(const Implementation& one) {
        Op& op = graph_.ops[one.op];
        if (one.kind == ImplementationKind::IntermediateActivated) {
            const auto storage = static_cast<StorageIndex>(graph_.storages.size());
            const auto tensor = static_cast<TensorIndex>(graph_.tensors.size());
            Storage& made = graph_.storages.emplace_back();
            made.bytes = one.bytes;
            made.category = Category::Activation;
            graph_.tensors.push_back({storage, kNone, kNone});
            op.outputs.push_back({tensor, true});
            touched_.insert(storage);
            return {tensor, 0};
        }
        const OpOutput& made = op.outputs[one.output];
        const StorageIndex storage = graph_.storageOf(made.tensor);
        Use use{made.tensor, 0};
        if (const Use* read = made.makesStorage ? nullptr : readOf(graph_, op, storage))
            use.version = read->version;
        for (const Write& write : op.writes)
            if (write.storage == storage) use.version = write.versionBefore + 1;
        touched_.insert(storage);
        return use;
    }

    bool replaceRead(const Implementation& one) {
        const auto replaced = [&](const Use& use) {
            return use.tensor < static_cast<TensorIndex>(original_.tensors.size()) &&
                   original_.storageOf(use.tensor) == one.insteadOf;
        };
        Op& backward = graph_.ops[one.backward];
        const auto at = std::find_if(backward.inputs.begin(), backward.inputs.end(), replaced);
        if (at == backward.inputs.end()) return fail("replaces what another one replaces too");
        const auto position = at - backward.inputs.begin();
        touched_.insert(graph_.storageOf(at->tensor));
        backward.inputs[position] = replacement(one);
        backward.inputs.erase(
            std::remove_if(backward.inputs.begin() + position + 1, backward.inputs.end(), replaced),
            backward.inputs.end());
        return changed_ = true;
    }

    // Releases of the storages whose uses have changed: right after their last use, or none where
    // they are alive at the end.
    void placeReleases() {
        std::map<StorageIndex, OpIndex> last;
        for (OpIndex i = 0; i < static_cast<OpIndex>(graph_.ops.size()); ++i) {
            const auto used = [&](StorageIndex s) {
                if (touched_.contains(s)) last[s] = i;
            };
            for (const Use& use : graph_.ops[i].inputs) used(graph_.storageOf(use.tensor));
            for (const OpOutput& made : graph_.ops[i].outputs) used(graph_.storageOf(made.tensor));
            for (const Write& write : graph_.ops[i].writes) used(write.storage);
        }
        for (const TensorIndex tensor : graph_.finalTensors) last.erase(graph_.storageOf(tensor));
        std::map<OpIndex, std::vector<StorageIndex>> after;
        for (const auto& [storage, op] : last) after[op].push_back(storage);
        std::vector<Event> events;
        for (const Event& event : graph_.events) {
            if (event.kind == Event::Kind::Release && touched_.contains(event.index)) continue;
            events.push_back(event);
            if (event.kind != Event::Kind::Compute) continue;
            for (const StorageIndex s : after[event.index])
                events.push_back({Event::Kind::Release, s});
        }
        graph_.events = std::move(events);
    }

    const TrainingGraph& original_;
    TrainingGraph graph_;
    const Implementation* current_ = nullptr;
    std::string what_;
    std::set<OpIndex> figured_;       // ops whose figures are set
    std::set<StorageIndex> touched_;  // whose uses have changed
    bool changed_ = false;            // more than figures
};

std::string namesOf(const Menu& menu, OpIndex op) {
    std::string names;
    for (const Implementation& one : menu.implementations)
        if (one.op == op) names += (names.empty() ? "" : ", ") + one.name;
    return names.empty() ? "no menu has one for this op; give it with --menu"
                         : "the menu has for this op: " + names;
}

}  // namespace

std::string implementationFault(const TrainingGraph& graph, const Implementation& one) {
    const Op& op = graph.ops[one.op];
    const bool reads =
        one.kind == ImplementationKind::OutputActivated || one.kind == ImplementationKind::InPlace;
    if (reads && (one.output < 0 || static_cast<std::size_t>(one.output) >= op.outputs.size()))
        return "names output " + std::to_string(one.output) + ", which the op does not have";
    if (one.backward != kNone && readOf(graph, graph.ops[one.backward], one.insteadOf) == nullptr)
        return "replaces storage " + std::to_string(one.insteadOf) + ", which op " +
               std::to_string(one.backward) + " does not read";
    if (one.backward != kNone && graph.ops[one.backward].viewOnly)
        return "names op " + std::to_string(one.backward) +
               " as its gradient, which makes views only";
    if (one.kind != ImplementationKind::InPlace) return {};
    if (graph.storages[one.takes].tensors.empty()) return "takes a storage that nothing looks at";
    return placeFault(graph, one, graph.storages[one.takes].tensors.front());
}

Result<TrainingGraph> applyImplementations(const TrainingGraph& graph, const Menu& menu,
                                           const ImplementationChoice& choice) {
    std::map<OpIndex, const Implementation*> found;
    for (const Implementation& one : menu.implementations)
        if (const auto at = choice.find(one.op); at != choice.end() && at->second == one.name)
            found.emplace(one.op, &one);
    std::vector<const Implementation*> chosen;
    for (const auto& [op, name] : choice) {
        const auto at = found.find(op);
        if (op < 0 || op >= static_cast<OpIndex>(graph.ops.size()) || at == found.end())
            return badInput("there is no implementation '" + name + "' of op " + std::to_string(op),
                            namesOf(menu, op));
        chosen.push_back(at->second);
    }
    return Applier(graph).apply(chosen);
}

Result<Menu> chosenEntries(const Plan& plan, const TrainingGraph& graph, const Menu& menu) {
    Menu known = onlyChosen(menu, plan.implementations);
    if (known.implementations.size() == plan.implementations.size()) return known;
    if (const Status fits = checkMenu(plan.chosen, graph); !fits) return fits.error();
    for (Implementation& one : onlyChosen(plan.chosen, plan.implementations).implementations)
        if (known.find(one.op, one.name) == nullptr)
            known.implementations.push_back(std::move(one));
    return known;
}

Result<TrainingGraph> graphUnder(const Plan& plan, const TrainingGraph& graph, const Menu& menu) {
    if (Status same = requireSameGraph(plan, graph); !same) return same.error();
    const auto known = chosenEntries(plan, graph, menu);
    if (!known) return known.error();
    Result<TrainingGraph> judged = applyImplementations(graph, *known, plan.implementations);
    if (judged && plan.link) judged->link = *plan.link;
    return judged;
}

}  // namespace hw::core
