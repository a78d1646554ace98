// SPDX-License-Identifier: MIT
#include "rebuild.h"

#include <deque>
#include <optional>

namespace hw::live::runtime {

/// A storage at a version, and the op that is being run again on the way there.
struct Rebuild::Goal {
    std::size_t storage = 0;
    std::int32_t version = 0;
    std::optional<std::uint32_t> op = {};
    std::vector<StoragePointer> inputs = {};  // of the op, as far as they are there
};

void Rebuild::restore(std::size_t storage) {
    Slot& slot = slots_[storage];
    StoragePointer made = at(storage, slot.written);
    copies_.erase(storage);
    slots_.fill(storage, std::move(made), slot.written);
}

/// What a goal needs are goals of their own, on a stack of ours: chains may be as long as a step.
StoragePointer Rebuild::at(std::size_t storage, std::int32_t version) {
    if (StoragePointer found = find(storage, version)) return found;
    std::deque<Goal> goals{{storage, version}};
    while (true) {
        Goal& goal = goals.back();
        if (!goal.op) {
            if (StoragePointer found = find(goal.storage, goal.version)) {
                goals.pop_back();
                if (goals.empty()) return found;
                goals.back().inputs.push_back(std::move(found));
                continue;
            }
            goal.op = nextOp(goal);
            goal.inputs.clear();
        }
        const auto& needed = program_.ops[*goal.op].inputs;
        if (goal.inputs.size() < needed.size()) {
            if (calls_[*goal.op].owns(goal.inputs.size())) {
                goal.inputs.emplace_back();
                continue;
            }
            const Input& next = needed[goal.inputs.size()];
            goals.push_back({next.storage, next.version});
            continue;
        }
        runAgain(*goal.op, goal.inputs);
        goal.op.reset();
    }
}

/// The storage itself where it is at that version, or a copy that is; null: neither is.
StoragePointer Rebuild::find(std::size_t storage, std::int32_t version) {
    const Slot& slot = slots_[storage];
    if (slot.present() && slot.version == version) return slot.lock();
    const auto copy = copies_.find(storage);
    if (copy != copies_.end() && copy->second.version == version) return copy->second.storage;
    StoragePointer decoded = slots_.decoded(storage, version);
    if (decoded) copies_.insert_or_assign(storage, Copy{decoded, version});
    return decoded;
}

/// The op that makes the storage, or brings a copy of it to the next version.
std::uint32_t Rebuild::nextOp(const Goal& goal) {
    const ProgramStorage& planned = program_.storages[goal.storage];
    if (planned.constant)
        throw Unrestorable("storage " + std::to_string(goal.storage) +
                           " is gone and nothing makes it");
    const auto copy = copies_.find(goal.storage);
    const bool fresh = copy == copies_.end() || copy->second.version > goal.version;
    const std::size_t next = fresh ? 0 : static_cast<std::size_t>(copy->second.version) + 1;
    if (fresh) copies_.erase(goal.storage);
    const std::uint32_t op = planned.chain[next];
    if (!calls_[op].kept())
        throw Unrestorable(program_.fullName(program_.ops[op]) +
                           " was not kept, so it cannot be run again");
    return op;
}

/// What it makes is a copy at version 0, what it writes one at a further version.
void Rebuild::runAgain(std::uint32_t op, const std::vector<StoragePointer>& inputs) {
    const ProgramOp& planned = program_.ops[op];
    std::vector<std::pair<std::size_t, Copy>> written;
    for (const std::uint32_t storage : planned.writes)
        for (std::size_t k = 0; k < planned.inputs.size(); ++k) {
            if (planned.inputs[k].storage != storage) continue;
            // What is written must be a copy: the storage itself belongs to the program.
            if (slots_[storage].present() && slots_[storage].lock() == inputs[k])
                throw Unrestorable(program_.fullName(planned) +
                                   " would write what the program holds");
            written.emplace_back(storage, Copy{inputs[k], planned.inputs[k].version + 1});
            break;
        }
    before_(op);
    const std::vector<at::Tensor> results =
        calls_[op].run(agent_, planned.inputs, [&](const Input& input) {
            return inputs[static_cast<std::size_t>(&input - planned.inputs.data())];
        });
    ++ops_;
    for (std::size_t j = 0; j < planned.outputs.size() && j < results.size(); ++j)
        if (planned.outputs[j].makes)
            copies_.insert_or_assign(
                planned.outputs[j].storage,
                Copy{StoragePointer::reclaim_copy(plainStorage(results[j])), 0});
    for (auto& [storage, copy] : written) copies_.insert_or_assign(storage, std::move(copy));
}

}  // namespace hw::live::runtime
