// SPDX-License-Identifier: MIT
// Where a step begins and ends, and how much of it is looked at.
#include <ATen/SequenceNumber.h>

#include <algorithm>

#include "runtime.h"

namespace hw::live::runtime {

void Runtime::enter(std::int64_t program) {
    forgetStep();
    current_ = program;
    position_ = 0;
    figures_ = {};
    verifier_.beginStep();
    divergence_.reset();
    donePeak_.reset();
    streams_.reset();
    holdsDue_.clear();
    if (!planned()) return;
    ++this->program().steps;
    slots_.reset(this->program().storages.size());
    bindKnown();
    makeRoomForCalls();
    for (const ProgramStorage& storage : this->program().storages)
        if (storage.pinned && !storage.constant) figures_.pinnedBytes += storage.bytes;
    curve_.clear();
    if (!traced_) return;
    profiler::native::OpWindow window;
    agent_.begin(&window);
}

/// What leaves before the step has shown it is what it was in the last one: if it is not, an op
/// reads something else than the planned one, and the plan is left.
void Runtime::bindKnown() {
    for (std::size_t i = 0; i < program().known.size(); ++i) {
        const StoragePointer impl = program().known[i].lock();
        if (impl && slots_[program().early[i]].key() == nullptr)
            static_cast<void>(slots_.bindNew(program().early[i], impl.get()));
    }
}

void Runtime::learn() {
    program().known.clear();
    for (const std::uint32_t storage : program().early) {
        const StoragePointer impl = slots_[storage].lock();
        program().known.emplace_back(impl);
    }
}

void Runtime::makeRoomForCalls() {
    if (calls_.size() < program().ops.size()) calls_.resize(program().ops.size());
}

/// The room for what is kept of it stays.
void Runtime::forgetStep() {
    slots_.reset(0);
    for (const std::size_t op : kept_) calls_[op].clear();
    kept_.clear();
    settled_ = aside_ = lean_ = learns_ = false;
    current_ = -1;
}

void Runtime::begin() {
    const std::lock_guard<OpLock> guard(lock_);
    findAllSchemas();
    enter(programs_.empty() || !fault_.empty() ? -1 : 0);
    early_ = planned() && forward_;
    lean_ = !early_ && mayBeLean();
    forward_ = begins_ = passed_ = false;
    ends_ = {};
    nodesBefore_ = at::sequence_number::peek();
    profiler::native::standAside(false);
}

void Runtime::forward() {
    const std::lock_guard<OpLock> guard(lock_);
    forward_ = begins_ = true;
    if (!aside_) profiler::native::standAside(false);
}

/// All of the planned step is to be seen: of the first one that keeps to its plan, and now and
/// then.
bool Runtime::isLookedAt() const {
    return traced_ || program().onGpu || !usual_ || program().steps % kStepsPerWhole == 1;
}

bool Runtime::mayBeLean() const {
    return planned() && programs_.size() == 1 && !isLookedAt();
}

/// Batches are waited for by no plan: what reads one knows it when it comes.
void Runtime::skipBatches() {
    const Program& program = this->program();
    while (position_ < std::min(program.ops.size(), program.forwardAt) &&
           program.ops[position_].receives) {
        const ProgramOp& skipped = program.ops[position_];
        for (const std::uint32_t storage : skipped.gone) slots_.forgetDead(storage);
        for (const Action& action : skipped.before) {
            if (action.kind == wire::LiveAction::Hold) holdsDue_.push_back(action.target);
            if (action.kind == wire::LiveAction::Release) slots_.release(action.target);
        }
        ++position_;
        if (traced_) noteLiveBytes();
    }
}

/// What the plan holds of batches that were skipped, from the op on that is the first to read them.
void Runtime::holdBatches() {
    const auto known = [&](std::uint32_t storage) { return slots_[storage].key() != nullptr; };
    const auto first = std::stable_partition(
        holdsDue_.begin(), holdsDue_.end(), [&](std::uint32_t storage) { return !known(storage); });
    std::for_each(first, holdsDue_.end(), [&](std::uint32_t storage) { slots_[storage].hold(); });
    holdsDue_.erase(first, holdsDue_.end());
}

/// From the forward pass on no other op comes between the plan's.
void Runtime::endEarly() {
    early_ = false;
    lean_ = mayBeLean();
    if (!lean_) return;
    const auto leave = [&](std::uint32_t storage, bool followed) {
        if (!followed && slots_[storage].key() != nullptr) slots_.unbind(storage);
    };
    for (std::size_t i = 0; i < position_; ++i) {
        for (const Input& input : program().ops[i].inputs) leave(input.storage, input.followed);
        for (const Output& output : program().ops[i].outputs)
            leave(output.storage, output.followed);
    }
}

void Runtime::ends() {
    const std::lock_guard<OpLock> guard(lock_);
    over_ = true;
}

/// Of the planned step; the last one lacks what other steps do for the next.
bool Runtime::isWhole() const {
    if (over_ && position_ >= program().settledAt) return true;
    return aside_ ? ends_.boundaries == usual_->boundaries : position_ == program().ops.size();
}

/// Of a planned step that is whole. False: its last ops were not looked at, and it was another one
/// than those whose ops were.
bool Runtime::endsAsUsual() {
    ends_.nodes = at::sequence_number::peek() - nodesBefore_;
    // The program's last step lacks what others do for the next.
    const bool same = usual_ && (over_ || ends_ == *usual_);
    if (!aside_) {
        alike_ = same ? alike_ + 1 : 1;
        usual_ = ends_;
        return true;
    }
    varies_ = !same;
    figures_.ops = std::max(figures_.ops, static_cast<std::int64_t>(program().ops.size()));
    if (!same)
        divergence_ =
            Divergence{static_cast<std::int64_t>(position_),
                       "a step with " + std::to_string(usual_->nodes) + " nodes of autograd",
                       std::to_string(ends_.nodes)};
    return same;
}

/// Of a step that has left its plan: the plan was carried out, and what came instead of its last
/// ops, such as figures that are logged now and then, did not raise the peak.
bool Runtime::endsOtherwise() {
    if (!donePeak_) return false;
    profiler::native::MemoryWindow window;
    agent_.window(&window);
    figures_.peakBefore = std::max(*donePeak_, window.peak);
    if (window.peak > *donePeak_) return false;
    divergence_.reset();
    return true;
}

Boundary Runtime::boundary() {
    const std::lock_guard<OpLock> guard(lock_);
    Boundary result = Boundary::Unplanned;
    ++ends_.boundaries;
    if (planned()) {
        const bool whole = isWhole();
        if (!whole && !early_) return Boundary::Middle;
        if (!settled_ && !lean_) uncountedBytes_ = uncountedBytes();
        figures_.uncountedBytes = uncountedBytes_;
        restoreAll();  // what a plan has left out by mistake, or nothing
        if (!settled_) learn();
        if (whole && endsAsUsual() && !learns_) result = Boundary::Planned;
    } else if (endsOtherwise()) {
        figures_.uncountedBytes = uncountedBytes_;
        result = Boundary::Planned;
    }
    verifier_.endStep();
    exposures_.endStep();
    donePeak_.reset();
    forgetStep();
    settleDevices();
    return result;
}

/// Of the program's constants, those that are there now. What lasts and no op has read is taken to
/// be older than the counting.
std::int64_t Runtime::uncountedBytes() {
    std::int64_t bytes = 0;
    for (const std::uint32_t s : program().constants) {
        const StoragePointer storage = slots_[s].lock();
        const bool unread = slots_[s].key() == nullptr && program().storages[s].lasting;
        if (unread ||
            (storage && agent_.block(reinterpret_cast<std::uint64_t>(storage->data())) < 0))
            bytes += program().storages[s].bytes;
    }
    return bytes;
}

/// Nothing of the plan is left to do, and the program sees all that it has made. An optimizer's ops
/// are many and small: they pass with as little work as can be, or are not seen at all. Which of
/// several plans the step ends under is of no consequence then.
void Runtime::settle() {
    if (early_ || isLookedAt() || !slots_.away().empty()) return;
    learn();
    slots_.reset(0);
    settled_ = true;
    aside_ = alike_ >= kStepsAlike && !varies_;
    if (aside_) profiler::native::standAside(true);
}

}  // namespace hw::live::runtime
