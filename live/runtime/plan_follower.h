// SPDX-License-Identifier: MIT
// A plan under a budget: as long as the program's ops are the planned ones, it says what is evicted
// and what is made again before and after each of them. Nothing depends on it but memory and time.
#pragma once

#include "op_matcher.h"

namespace hw::live::runtime {

/// Tensors of an op within a budget: the storages have the runtime's numbers.
struct NumberedTensors {
    c10::SmallVector<std::uint64_t, 8> forms;
    c10::SmallVector<std::int64_t, 8> bytesOf;
    c10::SmallVector<std::uint32_t, 8> storages;
    c10::SmallVector<bool, 8> made;  // of results: by this op

    std::size_t size() const { return storages.size(); }
    std::uint32_t storage(std::size_t k) const { return storages[k]; }
    std::int64_t bytes(std::size_t k) const { return bytesOf[k]; }
    std::uint64_t form(std::size_t k) const { return forms[k]; }
    bool isNew(std::size_t k) const { return made[k]; }
};

/// The storages of a plan in the runtime's numbers.
class NumberedStorages {
public:
    void reset(std::size_t planned);
    /// They have other numbers: -1 where one is forgotten.
    void rename(const std::vector<std::int64_t>& to);
    /// -1: it has not come by.
    std::int64_t operator[](std::uint32_t planned) const { return bound_[planned]; }

    // what OpMatcher asks
    static bool follows(bool) { return true; }
    bool is(std::uint32_t planned, bool, std::uint32_t storage) const {
        return bound_[planned] == storage;
    }
    bool isOpen(std::uint32_t planned) const { return bound_[planned] < 0; }
    bool bind(std::uint32_t planned, std::uint32_t storage);
    void unbind(std::uint32_t planned);

private:
    std::vector<std::int64_t> bound_;  // by the plan's numbers
    std::vector<std::int64_t> owner_;  // and the other way round
};

class PlanFollower {
public:
    explicit PlanFollower(Program program) : program_(std::move(program)) {}

    /// A step begins. Until forward() other ops may come between the planned ones.
    void begin();
    void forward() { early_ = false; }
    /// The storages have other numbers: -1 where one is forgotten.
    void rename(const std::vector<std::int64_t>& to) { storages_.rename(to); }
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

    /// An op that begins; null: it is not the planned one, see miss().
    const ProgramOp* begin(const c10::FunctionSchema& schema, const NumberedTensors& tensors);
    /// An op that is not the planned one: unless the forward pass has not begun the plan is left.
    void miss() { follows_ = early_; }
    /// It has run. False: it has made something else, and the plan is left.
    bool end(const NumberedTensors& results);
    /// It has raised an exception, or the program does something that no op shows.
    void leave() { follows_ = false; }

    /// In the runtime's numbers; -1: it has not come by.
    std::int64_t storage(std::uint32_t planned) const { return storages_[planned]; }
    const ProgramOp& op(std::uint32_t planned) const { return program_.ops[planned]; }

private:
    Program program_;
    NumberedStorages storages_;
    std::size_t position_ = 0;
    bool follows_ = false;
    bool early_ = false;
};

}  // namespace hw::live::runtime
