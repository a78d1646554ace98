// SPDX-License-Identifier: MIT
#include "plan_follower.h"

namespace hw::live::runtime {

void NumberedStorages::reset(std::size_t planned) {
    bound_.assign(planned, -1);
    owner_.clear();
}

void NumberedStorages::rename(const std::vector<std::int64_t>& to) {
    owner_.clear();
    for (std::size_t planned = 0; planned < bound_.size(); ++planned) {
        const std::int64_t bound =
            bound_[planned] < 0 ? -1 : to[static_cast<std::size_t>(bound_[planned])];
        bound_[planned] = -1;
        if (bound >= 0)
            bind(static_cast<std::uint32_t>(planned), static_cast<std::uint32_t>(bound));
    }
}

bool NumberedStorages::bind(std::uint32_t planned, std::uint32_t storage) {
    if (owner_.size() <= storage) owner_.resize(storage + 1, -1);
    if (owner_[storage] >= 0) return false;
    bound_[planned] = storage;
    owner_[storage] = planned;
    return true;
}

void NumberedStorages::unbind(std::uint32_t planned) {
    owner_[static_cast<std::size_t>(bound_[planned])] = -1;
    bound_[planned] = -1;
}

void PlanFollower::begin() {
    if (!program_.complete) program_.complete = findSchemas(program_);
    position_ = 0;
    follows_ = early_ = true;
    storages_.reset(program_.storages.size());
}

const ProgramOp* PlanFollower::begin(const c10::FunctionSchema& schema,
                                     const NumberedTensors& tensors) {
    if (position_ == program_.ops.size()) return nullptr;
    const ProgramOp& op = program_.ops[position_];
    if (op.schema == nullptr) program_.complete = findSchemas(program_);
    return OpMatcher(program_, storages_).compare(op, schema, tensors) ? nullptr : &op;
}

bool PlanFollower::end(const NumberedTensors& results) {
    follows_ = OpMatcher(program_, storages_).bindResults(program_.ops[position_], results);
    if (follows_) ++position_;
    return follows_;
}

}  // namespace hw::live::runtime
