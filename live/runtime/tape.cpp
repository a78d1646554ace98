// SPDX-License-Identifier: MIT
#include "tape.h"

#include <algorithm>
#include <utility>

namespace hw::live::runtime {

TapeOp& Tape::next() {
    if (ops_.size() == used_) ops_.emplace_back();
    return ops_[used_];
}

std::uint32_t Tape::add(const std::vector<Input>& inputs, const std::vector<Output>& outputs,
                        const std::vector<std::uint32_t>& writes) {
    const auto index = static_cast<std::uint32_t>(used_);
    TapeOp& op = ops_[used_++];
    op.inputs = items_.keep(inputs);
    op.outputs = items_.keep(outputs);
    op.writes = items_.keep(writes);
    for (const Output& output : outputs)
        if (output.makes) origins_[output.storage].chain.push_back(index);
    for (const std::uint32_t storage : writes) {
        origins_[storage].chain.push_back(index);
        origins_[storage].readers.clear();
    }
    for (const Input& input : inputs) {
        if (input.version == kUnread) continue;
        auto& readers = origins_[input.storage].readers;
        const bool own = contains(writes, input.storage);
        if (!own && (readers.empty() || readers.back() != index)) readers.push_back(index);
    }
    return index;
}

void Tape::compact(const std::vector<std::int64_t>& to, std::size_t storages,
                   const std::vector<bool>& makes) {
    std::vector<bool> needed(used_, false);
    for (std::size_t s = 0; s < origins_.size(); ++s)
        if (makes[s])
            for (const std::uint32_t op : origins_[s].chain) needed[op] = true;
    Tape smaller;
    for (std::size_t s = 0; s < storages; ++s) smaller.addStorage();
    const auto renamed = [&](std::uint32_t s) {
        return s == kNobody || to[s] < 0 ? kNobody : static_cast<std::uint32_t>(to[s]);
    };
    for (std::size_t i = 0; i < used_; ++i) {
        if (!needed[i]) continue;
        TapeOp& op = ops_[i];
        std::vector<Input> inputs(op.inputs.begin(), op.inputs.end());
        std::vector<Output> outputs(op.outputs.begin(), op.outputs.end());
        std::vector<std::uint32_t> writes(op.writes.begin(), op.writes.end());
        for (Input& input : inputs) input.storage = renamed(input.storage);
        for (Output& output : outputs) {
            output.makes = output.makes && makes[output.storage];  // so it is somebody
            output.storage = renamed(output.storage);
        }
        for (std::uint32_t& storage : writes) storage = renamed(storage);
        std::swap(smaller.next(), op);
        smaller.add(inputs, outputs, writes);
    }
    for (std::size_t i = 0; i < used_; ++i)
        if (!needed[i]) ops_[i].call.clear();
    if (smaller.used_ == 0)  // the usual case: the room of the calls stays
        std::swap(smaller.ops_, ops_);
    if (storages == 0) {  // likewise
        origins_.clear();
        std::swap(smaller.origins_, origins_);
    }
    *this = std::move(smaller);
}

}  // namespace hw::live::runtime
