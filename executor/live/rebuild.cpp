// SPDX-License-Identifier: MIT
#include "rebuild.h"

namespace hw::executor::live {

void Rebuild::restore(std::size_t storage) {
    Slot& slot = slots_[storage];
    StoragePointer made = at(storage, slot.written);
    copies_.erase(storage);
    slots_.fill(storage, std::move(made), slot.written);
}

StoragePointer Rebuild::at(std::size_t storage, std::int32_t version) {
    Slot& slot = slots_[storage];
    if (slot.present() && slot.version == version) return slot.lock();
    const auto copy = copies_.find(storage);
    if (copy != copies_.end() && copy->second.version == version) return copy->second.storage;
    if (StoragePointer decoded = slots_.decoded(storage, version))
        return copies_.insert_or_assign(storage, Copy{std::move(decoded), version})
            .first->second.storage;
    return make(storage, version);
}

StoragePointer Rebuild::make(std::size_t storage, std::int32_t version) {
    const ProgramStorage& planned = program_.storages[storage];
    if (planned.constant)
        throw Unrestorable("storage " + std::to_string(storage) + " is gone and nothing makes it");
    auto copy = copies_.find(storage);
    const bool fresh = copy == copies_.end() || copy->second.version > version;
    if (fresh) {
        copies_.erase(storage);
        runAgain(planned.chain[0]);
        copy = copies_.find(storage);
    }
    for (std::int32_t v = copy->second.version; v < version; ++v)
        runAgain(planned.chain[static_cast<std::size_t>(v) + 1]);
    return copies_.at(storage).storage;
}

/// What it makes is a copy at version 0, what it writes one at a further version.
void Rebuild::runAgain(std::uint32_t op) {
    const ProgramOp& planned = program_.ops[op];
    const Call& call = calls_[op];
    if (!call.kept())
        throw Unrestorable(planned.fullName() + " was not kept, so it cannot be run again");
    const auto writes = [&](std::size_t storage) {
        for (const std::uint32_t written : planned.writes)
            if (written == storage) return true;
        return false;
    };
    std::vector<StoragePointer> inputs;
    for (const Input& input : planned.inputs) {
        StoragePointer found = at(input.storage, input.version);
        // What is written must be a copy: the storage itself belongs to the program.
        if (writes(input.storage) && copies_.count(input.storage) == 0)
            throw Unrestorable(planned.fullName() + " would write what the program holds");
        inputs.push_back(std::move(found));
    }
    const std::vector<at::Tensor> results = call.run(planned, [&](const Input& input) {
        return inputs[static_cast<std::size_t>(&input - planned.inputs.data())];
    });
    ++ops_;
    for (std::size_t j = 0; j < planned.outputs.size() && j < results.size(); ++j)
        if (planned.outputs[j].makes)
            copies_.insert_or_assign(
                planned.outputs[j].storage,
                Copy{StoragePointer::reclaim_copy(plainStorage(results[j])), 0});
    for (const std::uint32_t written : planned.writes) ++copies_.at(written).version;
}

}  // namespace hw::executor::live
