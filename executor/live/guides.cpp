// SPDX-License-Identifier: MIT
#include "guides.h"

#include <algorithm>

namespace hw::executor::live {

void Guides::add(std::int64_t kind, Boundary ending, Program program) {
    following_.clear();
    const auto same = [&](const std::unique_ptr<Kind>& each) { return each->kind == kind; };
    const auto older = [](const std::unique_ptr<Kind>& a, const std::unique_ptr<Kind>& b) {
        return a->wholeAt < b->wholeAt;
    };
    guides_.erase(std::remove_if(guides_.begin(), guides_.end(), same), guides_.end());
    if (guides_.size() == kMost)
        guides_.erase(std::min_element(guides_.begin(), guides_.end(), older));
    guides_.push_back(std::make_unique<Kind>(kind, ending, std::move(program)));
    guides_.back()->wholeAt = steps_;
}

void Guides::clear() {
    following_.clear();
    guides_.clear();
}

void Guides::begin() {
    ++steps_;
    left_.reset();
    following_.clear();
    for (const auto& each : guides_) {
        each->op = nullptr;
        each->guide.begin();
        following_.push_back(each.get());
    }
    std::stable_sort(following_.begin(), following_.end(),
                     [](const Kind* a, const Kind* b) { return a->wholeAt > b->wholeAt; });
}

void Guides::forward() {
    for (Kind* const each : following_) each->guide.forward();
}

void Guides::rename(const std::vector<std::int64_t>& to) {
    for (Kind* const each : following_) each->guide.rename(to);
}

bool Guides::certain() const {
    return following_.size() == 1 && !acting().early() && acting().position() > deepest_;
}

Guides::Ended Guides::ended() {
    for (Kind* const each : following_)
        if (each->guide.whole()) {
            each->wholeAt = steps_;
            return {each->kind, each->ending};
        }
    return {};
}

/// The acting one may leave: the next one takes over from here, whatever was done before.
void Guides::dropLeft(bool elsewhere) {
    const auto left = [&](const Kind* each) {
        if (each->guide.follows()) return false;
        if (elsewhere && !each->guide.early())
            deepest_ = std::max(deepest_, each->guide.position());
        left_ = Divergence{
            static_cast<std::int64_t>(each->guide.position()), each->guide.expected(), {}};
        return true;
    };
    following_.erase(std::remove_if(following_.begin(), following_.end(), left), following_.end());
}

const ProgramOp* Guides::begin(const c10::FunctionSchema& schema, const Tensors& tensors,
                               const std::vector<std::uint32_t>& storages,
                               const std::function<std::int64_t(std::uint32_t)>& bytes) {
    bool all = true;
    Forms forms;
    for (Kind* const each : following_) {
        each->op = nullptr;
        if (each->guide.expects(schema, tensors.size())) {
            if (forms.empty())
                for (const c10::TensorImpl* const tensor : tensors)
                    forms.push_back(formOf(*tensor));
            each->op = each->guide.begin(forms, storages, bytes);
        }
        if (each->op == nullptr) each->guide.miss();
        all = all && each->op != nullptr;
    }
    if (!all) dropLeft(true);
    return follows() ? following_.front()->op : nullptr;
}

const ProgramOp* Guides::end(const std::vector<Output>& outputs) {
    bool all = true;
    for (Kind* const each : following_)
        if (each->op != nullptr) all = each->guide.end(outputs) && all;
    if (!all) dropLeft(true);
    return follows() ? std::exchange(following_.front()->op, nullptr) : nullptr;
}

void Guides::failed() {
    for (Kind* const each : following_)
        if (each->op != nullptr) each->guide.leave();
    dropLeft(false);
}

void Guides::leave() {
    for (Kind* const each : following_) each->guide.leave();
    dropLeft(false);
}

void Guides::leaveActing() {
    following_.front()->guide.leave();
    dropLeft(false);
}

}  // namespace hw::executor::live
