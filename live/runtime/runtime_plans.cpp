// SPDX-License-Identifier: MIT
// The plans of a program that trains, and how a step goes from one of them to another.
#include <algorithm>
#include <utility>

#include "runtime.h"
#include "typed_ops.h"

namespace hw::live::runtime {

void Runtime::forgetPrograms() {
    const std::lock_guard<OpLock> guard(lock_);
    programs_.clear();
    usual_.reset();
    alike_ = 0;
    varies_ = false;
    fault_.clear();
}

bool Runtime::add(const std::string& bytes, std::string& why) {
    auto program = readProgram(bytes, wire::kPlanActions, why);
    if (!program) return false;
    if (program->ops.empty()) {
        why = "a plan without ops";
        return false;
    }
    for (const ProgramOp& op : program->ops)
        if (const std::string name = program->fullName(op);
            op.schema == nullptr && name.rfind("aten::", 0) == 0) {
            why = "this framework has no op " + name;
            return false;
        }
    for (const OpName& name : program->names)
        if (const auto op = c10::Dispatcher::singleton().findSchema({name.name, name.overload}))
            profiler::native::takeTyped(*op);
    const std::lock_guard<OpLock> guard(lock_);
    for (Program& other : programs_) {
        const std::size_t common = shared(other, *program).ops;
        for (std::size_t i = 0; i < common; ++i)
            other.ops[i].keep = program->ops[i].keep = other.ops[i].keep || program->ops[i].keep;
        const std::size_t split = common + 1;  // the first op that shows which of the two it is
        const std::size_t here = other.settledAt, there = program->settledAt;
        other.settledAt = std::max(here, std::min(there, split));
        program->settledAt = std::max(there, std::min(here, split));
    }
    programs_.push_back(std::move(*program));
    return true;
}

void Runtime::findAllSchemas() {
    for (Program& each : programs_)
        if (!each.complete) each.complete = findSchemas(each);
}

/// How far two programs are the same, but for the numbers of their storages.
Runtime::Shared Runtime::shared(const Program& one, const Program& other) const {
    Shared result;
    result.storages.assign(one.storages.size(), -1);
    std::vector<bool> taken(other.storages.size(), false);
    const auto same = [&](std::uint32_t a, std::uint32_t b) {
        if (result.storages[a] < 0 && !taken[b]) {
            if (one.storages[a].bytes != other.storages[b].bytes ||
                one.storages[a].constant != other.storages[b].constant)
                return false;
            result.storages[a] = b;
            taken[b] = true;
        }
        return result.storages[a] == static_cast<std::int64_t>(b);
    };
    for (; result.ops < std::min(one.ops.size(), other.ops.size()); ++result.ops) {
        const ProgramOp &a = one.ops[result.ops], &b = other.ops[result.ops];
        bool equal = a.schema == b.schema &&
                     (a.schema != nullptr || one.fullName(a) == other.fullName(b)) &&
                     a.inputs.size() == b.inputs.size() && a.outputs.size() == b.outputs.size() &&
                     a.writes.size() == b.writes.size();
        for (std::size_t k = 0; equal && k < a.inputs.size(); ++k)
            equal = a.inputs[k].form == b.inputs[k].form &&
                    same(a.inputs[k].storage, b.inputs[k].storage);
        for (std::size_t k = 0; equal && k < a.outputs.size(); ++k)
            equal = a.outputs[k].form == b.outputs[k].form &&
                    a.outputs[k].makes == b.outputs[k].makes &&
                    same(a.outputs[k].storage, b.outputs[k].storage);
        for (std::size_t k = 0; equal && k < a.writes.size(); ++k)
            equal = same(a.writes[k], b.writes[k]);
        if (!equal) break;
    }
    return result;
}

/// Another plan goes on where this one does not: the step so far is the same in both.
bool Runtime::switchTo(const c10::FunctionSchema& schema, const Tensors& tensors) {
    if (lean_) return false;  // it began when there was no other
    for (std::size_t q = 0; q < programs_.size(); ++q) {
        if (static_cast<std::int64_t>(q) == current_ || programs_[q].ops.size() <= position_ ||
            programs_[q].ops[position_].schema != &schema)
            continue;
        const Shared common = shared(program(), programs_[q]);
        if (common.ops < position_) continue;
        // What has left before its first use is none that the other plan knows by now.
        for (const std::size_t s : slots_.away())
            if (common.storages[s] < 0) restore(s);
        const std::int64_t before = std::exchange(current_, static_cast<std::int64_t>(q));
        slots_.rename(common.storages, program().storages.size());
        if (mismatch(schema, tensors).empty()) {
            makeRoomForCalls();
            bindKnown();
            if (adopt()) return true;
        }
        current_ = before;
        std::vector<std::int64_t> back(programs_[q].storages.size(), -1);
        for (std::size_t s = 0; s < common.storages.size(); ++s)
            if (common.storages[s] >= 0)
                back[static_cast<std::size_t>(common.storages[s])] = static_cast<std::int64_t>(s);
        slots_.rename(back, program().storages.size());
    }
    return false;
}

/// The same where nothing is at stake any more in either.
bool Runtime::switchSettled(const c10::FunctionSchema& schema, const Tensors& tensors) {
    for (std::size_t q = 0; q < programs_.size(); ++q) {
        if (static_cast<std::int64_t>(q) == current_ || programs_[q].settledAt > position_ ||
            shared(program(), programs_[q]).ops < position_)
            continue;
        const std::int64_t before = std::exchange(current_, static_cast<std::int64_t>(q));
        if (isNext(schema, tensors)) return true;
        current_ = before;
    }
    return false;
}

/// What a plan has done last with each storage before an op; none where it has made anything again.
std::optional<std::vector<Action>> Runtime::doneBefore(std::size_t position) {
    std::vector<Action> last(program().storages.size());
    for (std::size_t s = 0; s < last.size(); ++s)
        last[s] = {wire::LiveAction::Release, static_cast<std::uint32_t>(s), {}, {}};
    for (std::size_t i = 0; i < position; ++i)
        for (const Items<Action> actions : {program().ops[i].before, program().ops[i].after})
            for (const Action& action : actions) {
                if (traitsOf(action.kind).remakes) return std::nullopt;
                last[action.target] = action;
            }
    return last;
}

/// Everything is where the plan would have it at this op, had it been followed so far. False: it
/// cannot be brought there.
bool Runtime::adopt() {
    const auto last = doneBefore(position_);
    if (!last) return false;
    for (std::size_t s = 0; s < slots_.size(); ++s)
        if ((*last)[s].kind == wire::LiveAction::Hold && !slots_[s].present() && !slots_[s].away())
            return false;
    for (std::size_t s = 0; s < slots_.size(); ++s)
        if ((*last)[s].kind != wire::LiveAction::Drop && slots_[s].away()) restore(s);
    for (std::size_t s = 0; s < slots_.size(); ++s) {
        if ((*last)[s].kind == wire::LiveAction::Drop && !slots_[s].present()) continue;
        if ((*last)[s].kind == wire::LiveAction::Secure) continue;
        if ((*last)[s].kind == wire::LiveAction::Leave)
            perform(Action{wire::LiveAction::Offload, static_cast<std::uint32_t>(s), {}, {}});
        perform((*last)[s]);
    }
    return true;
}

}  // namespace hw::live::runtime
