// SPDX-License-Identifier: MIT
// What the actions of a plan do, and how storages come back.
#include <algorithm>

#include "performer.h"
#include "runtime.h"

namespace hw::live::runtime {

struct Runtime::Performer {
    static constexpr wire::LiveActions kCan = wire::kPlanActions;
    Runtime& self;

    ProgramStorage& planned(std::uint32_t storage) const {
        return self.program().storages[storage];
    }
    Slot& slot(std::uint32_t storage) const { return self.slots_[storage]; }
    /// Somebody past the plan has it, or what it holds has not been read yet.
    bool stays(std::uint32_t storage) const {
        return planned(storage).pinned || slot(storage).stays || slot(storage).unread;
    }

    void recompute(const Action& action) {
        self.streams_.run([&] { self.recompute(action); });
    }
    void drop(std::uint32_t storage) {
        if (planned(storage).constant || stays(storage)) return;
        if (!self.slots_.drop(storage)) planned(storage).pinned = true;
    }
    void hold(std::uint32_t storage) { slot(storage).hold(); }
    void release(std::uint32_t storage) {
        if (!slot(storage).stays) self.slots_.release(storage);
    }
    void secure(std::uint32_t storage) {
        if (slot(storage).away()) self.restore(storage);
    }
    void encode(std::uint32_t storage, const Encoding& encoding) {
        if (stays(storage) || !slot(storage).present()) return;
        planned(storage).pinned = !self.slots_.encode(storage, encoding);
    }
    void decode(std::uint32_t storage) {
        self.slots_.decode(storage);
        self.verifyRecomputed(planned(storage).chain.back());
    }
    void offload(std::uint32_t storage) {
        if (planned(storage).early && slot(storage).key() == nullptr) self.learns_ = true;
        if (mayLeave(storage)) self.slots_.offload(storage);
    }
    void leave(std::uint32_t storage) {
        if (!slot(storage).present()) return;
        bool left = false;
        self.waits([&] { left = mayLeave(storage) && self.slots_.leave(storage); });
        if (left)
            self.figures_.offloadedBytes += planned(storage).bytes;
        else
            self.slots_.forgetCopy(storage);
    }
    void prefetch(std::uint32_t storage) {
        bool back = false;
        self.waits([&] { back = self.slots_.prefetch(storage); });
        if (!back) throw Unrestorable("what is in host memory cannot be read back");
    }
    /// No code past the dispatcher may look at its bytes.
    bool mayLeave(std::uint32_t storage) const {
        return !stays(storage) && !slot(storage).exposed && slot(storage).present();
    }
};

void Runtime::perform(Items<Action> actions) {
    Performer performer{*this};
    for (const Action& action : actions) runtime::perform(performer, action);
}

/// Runs an op again as the plan says. What is there already stays as it is.
void Runtime::recompute(const Action& action) {
    const ProgramOp& op = program().ops[action.target];
    const auto position = [&](std::uint32_t storage) {
        const auto& chain = program().storages[storage].chain;
        const auto at = std::find(chain.begin(), chain.end(), action.target) - chain.begin();
        return static_cast<std::int32_t>(at + (program().storages[storage].constant ? 1 : 0));
    };
    bool needed = false;
    for (const std::uint32_t output : action.outputs)
        if (output < op.outputs.size() && op.outputs[output].makes)
            needed = needed || !slots_[op.outputs[output].storage].present();
    for (const std::uint32_t storage : op.writes)
        needed = needed || slots_[storage].version < position(storage);
    if (!needed) return;
    if (!calls_[action.target].kept())
        throw Unrestorable(program().fullName(op) + " was not kept, so it cannot be run again");
    Rebuild rebuild(agent_, program(), calls_, slots_,
                    [&](std::uint32_t each) { verifySources(each); });
    std::vector<StoragePointer> inputs;
    for (std::size_t k = 0; k < op.inputs.size(); ++k)
        inputs.push_back(calls_[action.target].owns(k)
                             ? StoragePointer()
                             : rebuild.at(op.inputs[k].storage, op.inputs[k].version));
    verifySources(action.target);
    std::vector<at::Tensor> results;
    again([&] {
        results = calls_[action.target].run(agent_, op.inputs, [&](const Input& input) {
            return inputs[static_cast<std::size_t>(&input - op.inputs.data())];
        });
    });
    ++figures_.recomputedOps;
    for (const std::uint32_t output : action.outputs) {
        if (output >= op.outputs.size() || !op.outputs[output].makes || output >= results.size())
            continue;
        if (slots_[op.outputs[output].storage].present()) continue;
        slots_.fill(op.outputs[output].storage,
                    StoragePointer::reclaim_copy(plainStorage(results[output])), 0);
    }
    for (const std::uint32_t storage : op.writes) slots_.advance(storage);
    verifyRecomputed(action.target);
}

void Runtime::restore(std::size_t storage) {
    Rebuild rebuild(agent_, program(), calls_, slots_,
                    [&](std::uint32_t each) { verifySources(each); });
    again([&] { streams_.run([&] { rebuild.restore(storage); }); });
    noteRestored(storage);
}

void Runtime::noteRestored(std::size_t storage) {
    const ProgramStorage& planned = program().storages[storage];
    figures_.restoredBytes += planned.bytes;
    if (!planned.chain.empty()) verifyRecomputed(planned.chain.back());
}

void Runtime::restoreAll() {
    const std::vector<std::size_t> gone = slots_.away();
    if (gone.empty()) return;
    Rebuild rebuild(agent_, program(), calls_, slots_,
                    [&](std::uint32_t each) { verifySources(each); });
    streams_.run([&] {
        for (const std::size_t storage : gone) {
            if (!slots_[storage].away()) continue;
            rebuild.restore(storage);
            noteRestored(storage);
        }
    });
}

}  // namespace hw::live::runtime
