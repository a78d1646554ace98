// SPDX-License-Identifier: MIT
// A plan under a budget: as long as the program's ops are the planned ones, it says what is evicted
// and what is made again before and after each of them. Nothing depends on it but memory and time.
#pragma once

#include "call.h"

namespace hw::live::runtime {

using Forms = c10::SmallVector<std::uint64_t, 8>;  // of an op's tensors

class PlanFollower {
public:
    explicit PlanFollower(Program program) : program_(std::move(program)) {}

    /// A step begins. Until forward() other ops may come between the planned ones.
    void begin();
    void forward();
    /// The storages have other numbers: -1 where one is forgotten.
    void rename(const std::vector<std::int64_t>& to);
    /// Whether the step has been the planned one so far.
    bool follows() const { return follows_; }
    bool whole() const { return follows_ && position_ == program_.ops.size(); }
    /// The forward pass has not begun.
    bool early() const { return early_; }
    std::size_t position() const { return position_; }
    std::string expected() const {
        return position_ < program_.ops.size() ? program_.fullName(program_.ops[position_])
                                               : "the step's end";
    }

    /// Whether the next planned op is that one, of so many tensors.
    bool expects(const c10::FunctionSchema& schema, std::size_t tensors) const;
    /// Of an op that it expects: its tensors' forms, and their storages in the runtime's numbers.
    /// Null: it is not the planned one, see miss().
    const ProgramOp* begin(const Forms& forms, const std::vector<std::uint32_t>& storages,
                           const std::function<std::int64_t(std::uint32_t)>& bytes);
    /// An op that is not the planned one: unless the forward pass has not begun the plan is left.
    void miss() { follows_ = early_; }
    /// It has run. False: it has made something else, and the plan is left.
    bool end(const std::vector<Output>& outputs);
    /// It has raised an exception, or the program does something that no op shows.
    void leave() { follows_ = false; }

    /// In the runtime's numbers; -1: it has not come by.
    std::int64_t storage(std::uint32_t planned) const { return bound_[planned]; }
    const ProgramOp& op(std::uint32_t planned) const { return program_.ops[planned]; }

private:
    void forgetStorages();
    bool binds(const Input& input, std::uint32_t storage, std::int64_t bytes);

    Program program_;
    std::vector<std::int64_t> bound_;  // storages of the plan in the runtime's numbers
    std::vector<std::int64_t> owner_;  // and the other way round
    std::size_t position_ = 0;
    bool follows_ = false;
    bool early_ = false;
};

}  // namespace hw::live::runtime
