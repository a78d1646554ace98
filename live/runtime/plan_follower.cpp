// SPDX-License-Identifier: MIT
#include "plan_follower.h"

#include <algorithm>

namespace hw::live::runtime {

void PlanFollower::begin() {
    if (!program_.complete) program_.complete = findSchemas(program_);
    position_ = 0;
    follows_ = early_ = true;
    forgetStorages();
}

void PlanFollower::forward() {
    if (!early_) return;
    early_ = false;
    // The step's own ops before its forward pass have come, or other ones in their place.
}

void PlanFollower::forgetStorages() {
    bound_.assign(program_.storages.size(), -1);
    owner_.clear();
}

void PlanFollower::rename(const std::vector<std::int64_t>& to) {
    owner_.clear();
    for (std::size_t planned = 0; planned < bound_.size(); ++planned) {
        std::int64_t& bound = bound_[planned];
        if (bound >= 0) bound = to[static_cast<std::size_t>(bound)];
        if (bound < 0) continue;
        const auto storage = static_cast<std::size_t>(bound);
        if (owner_.size() <= storage) owner_.resize(storage + 1, -1);
        owner_[storage] = static_cast<std::int64_t>(planned);
    }
}

/// Whether the storage is the planned one; a constant is as soon as it is read.
bool PlanFollower::binds(const Input& input, std::uint32_t storage, std::int64_t bytes) {
    std::int64_t& bound = bound_[input.storage];
    if (bound == storage) return true;
    if (owner_.size() <= storage) owner_.resize(storage + 1, -1);
    const ProgramStorage& planned = program_.storages[input.storage];
    if (bound >= 0 || owner_[storage] >= 0 || !planned.constant || planned.bytes != bytes)
        return false;
    bound = storage;
    owner_[storage] = input.storage;
    return true;
}

bool PlanFollower::expects(const c10::FunctionSchema& schema, std::size_t tensors) const {
    return position_ < program_.ops.size() && program_.ops[position_].schema == &schema &&
           program_.ops[position_].inputs.size() == tensors;
}

const ProgramOp* PlanFollower::begin(const Forms& forms, const std::vector<std::uint32_t>& storages,
                                     const std::function<std::int64_t(std::uint32_t)>& bytes) {
    const ProgramOp& op = program_.ops[position_];
    for (std::size_t k = 0; k < forms.size(); ++k)
        if (forms[k] != op.inputs[k].form || !binds(op.inputs[k], storages[k], bytes(storages[k])))
            return nullptr;
    return &op;
}

bool PlanFollower::end(const std::vector<Output>& outputs) {
    const ProgramOp& op = program_.ops[position_];
    follows_ = outputs.size() == op.outputs.size();
    for (std::size_t j = 0; follows_ && j < outputs.size(); ++j) {
        const Output &planned = op.outputs[j], &made = outputs[j];
        follows_ = made.makes == planned.makes && made.bytes == planned.bytes;
        if (!follows_) break;
        if (!planned.makes) {
            follows_ = bound_[planned.storage] == made.storage;
            continue;
        }
        if (owner_.size() <= made.storage) owner_.resize(made.storage + 1, -1);
        bound_[planned.storage] = made.storage;
        owner_[made.storage] = planned.storage;
    }
    if (follows_) ++position_;
    return follows_;
}

}  // namespace hw::live::runtime
