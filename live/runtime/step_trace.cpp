// SPDX-License-Identifier: MIT
#include "step_trace.h"

#include <algorithm>
#include <utility>

namespace hw::live::runtime {
namespace {

constexpr std::size_t kAll = 32;  // storages that nothing tells of are looked at with each op
constexpr std::size_t kSome = 8;  // of more than that

void append(std::string& list, const std::string& item) {
    if (!list.empty()) list += ",\n";
    list += item;
}

std::string pair(std::int64_t one, std::int64_t other) {
    return "[" + std::to_string(one) + "," + std::to_string(other) + "]";
}

std::string listOf(at::IntArrayRef numbers) {
    std::string text;
    for (const std::int64_t number : numbers) {
        text += text.empty() ? "[" : ",";
        text += std::to_string(number);
    }
    return text.empty() ? "[]" : text + "]";
}

}  // namespace

StepTrace::Known& StepTrace::known(c10::StorageImpl* impl, bool constant) {
    const auto found = storages_.find(impl);
    if (found != storages_.end()) return found->second;
    const auto index = static_cast<std::int64_t>(storages_.size());
    append(bytes_, std::to_string(impl->nbytes()));
    if (constant) {
        append(constants_, "[\"constant\"," + std::to_string(index) + "]");
        const auto address = reinterpret_cast<std::uint64_t>(impl->data_ptr().get());
        untouched_ -= std::max<std::int64_t>(0, agent_.block(address));
    }
    c10::raw::weak_intrusive_ptr::incref(impl);
    first_.push_back(-1);
    return storages_
        .emplace(impl, Known{index, c10::weak_intrusive_ptr<c10::StorageImpl>::reclaim(impl)})
        .first->second;
}

std::int64_t StepTrace::tensor(const c10::TensorImpl& tensor) {
    const std::int64_t storage = storages_.at(plainStorage(tensor)).index;
    const auto [at, isNew] =
        numbers_.try_emplace(std::make_tuple(storage, formOf(tensor), tensor.storage_offset()),
                             static_cast<std::int64_t>(numbers_.size()));
    if (!isNew) return at->second;
    tensors_.push_back("[" + std::to_string(storage) + ",\"" + profiler::native::dtypeName(tensor) +
                       "\"," + listOf(tensor.sizes()) + "," + listOf(tensor.strides()));
    offsets_.push_back(tensor.storage_offset());
    std::int64_t& first = first_[static_cast<std::size_t>(storage)];
    if (first < 0) first = at->second;
    return at->second;
}

void StepTrace::untold(c10::StorageImpl* impl) {
    const auto found = storages_.find(impl);
    if (found == storages_.end() || std::exchange(found->second.untold, true)) return;
    untold_.push_back({impl, &found->second});
}

void StepTrace::allUntold() {
    for (c10::StorageImpl* const impl : alive()) untold(impl);
}

std::vector<c10::StorageImpl*> StepTrace::alive() const {
    std::vector<std::pair<std::int64_t, c10::StorageImpl*>> numbered;
    for (const auto& [impl, storage] : storages_)
        if (!storage.gone) numbered.emplace_back(storage.index, impl);
    std::sort(numbered.begin(), numbered.end());
    std::vector<c10::StorageImpl*> alive;
    for (const auto& each : numbered) alive.push_back(each.second);
    return alive;
}

std::vector<c10::StorageImpl*> StepTrace::told() const {
    std::vector<c10::StorageImpl*> list = alive();
    list.erase(std::remove_if(list.begin(), list.end(),
                              [&](c10::StorageImpl* impl) { return storages_.at(impl).untold; }),
               list.end());
    return list;
}

/// Notes it, if that is new.
bool StepTrace::isGone(c10::StorageImpl* impl, Known& storage, const Wanted& wanted) {
    if (storage.gone || (!storage.weak.expired() && wanted(impl))) return false;
    return storage.gone = true;
}

void StepTrace::lookAtUntold(const Wanted& wanted, std::size_t most,
                             std::vector<std::int64_t>& gone) {
    for (std::size_t left = std::min(most, untold_.size()); left > 0; --left) {
        if (next_ >= untold_.size()) next_ = 0;
        const auto [impl, storage] = untold_[next_];
        ++looks_;
        if (isGone(impl, *storage, wanted)) gone.push_back(storage->index);
        if (!storage->gone) {
            ++next_;
            continue;
        }
        untold_[next_] = untold_.back();
        untold_.pop_back();
    }
}

void StepTrace::noteReleases(const Wanted& wanted, std::size_t untold) {
    std::vector<std::int64_t> gone;
    for (c10::StorageImpl* const impl : suspects_) {
        const auto found = storages_.find(impl);
        if (found != storages_.end() && isGone(impl, found->second, wanted))
            gone.push_back(found->second.index);
    }
    suspects_.clear();
    lookAtUntold(wanted, untold, gone);
    std::sort(gone.begin(), gone.end());
    for (const std::int64_t index : gone)
        append(events_, "[\"release\"," + std::to_string(index) + "]");
}

void StepTrace::begin(const profiler::native::Operator& op, Values arguments,
                      const Wanted& wanted) {
    noteReleases(wanted, untold_.size() <= kAll ? kAll : kSome);
    written_.clear();
    std::string inputs, writes;
    for (const c10::TensorImpl* const each : plainTensors(arguments)) {
        const std::size_t before = storages_.size();
        const Known& storage = known(plainStorage(*each), true);
        const std::int64_t version = storage.version;
        if (storages_.size() > before && each->requires_grad())
            append(parameters_, std::to_string(storage.index));
        if (!inputs.empty()) inputs += ",";
        inputs += pair(tensor(*each), version);
    }
    for (const std::size_t index : op.writes)
        for (const c10::TensorImpl* const each : plainTensors(arguments.slice(index, 1))) {
            c10::StorageImpl* const impl = plainStorage(*each);
            if (std::find(written_.begin(), written_.end(), impl) != written_.end()) continue;
            const Known& storage = storages_.at(impl);
            if (!writes.empty()) writes += ",";
            writes += pair(storage.index, storage.version);
            written_.push_back(impl);
        }
    op_ = {};
    op_.name = op.name;
    op_.layer = place_.layer;
    op_.text = "{\"name\":\"" + op.name + (op.overload.empty() ? "" : "." + op.overload) +
               "\",\"random\":" + (op.random ? "true" : "false") +
               ",\"layer\":" + std::to_string(place_.layer) +
               ",\"phase\":" + std::to_string(static_cast<int>(place_.phase)) + ",\"inputs\":[" +
               inputs + "],\"writes\":[" + writes + "]";
}

void StepTrace::end(Values results, std::int64_t nanoseconds, std::int64_t peak) {
    std::string outputs;
    for (c10::StorageImpl* const impl : written_) ++storages_.at(impl).version;
    for (const c10::TensorImpl* const each : plainTensors(results)) {
        c10::StorageImpl* const impl = plainStorage(*each);
        const std::size_t before = storages_.size();
        known(impl, false);
        const bool made = storages_.size() > before;
        if (made) peak -= static_cast<std::int64_t>(impl->nbytes());
        if (!outputs.empty()) outputs += ",";
        outputs += pair(tensor(*each), made ? 1 : 0);
    }
    append(events_, "[\"op\"," + std::to_string(ops_.size()) + "]");
    op_.text += ",\"outputs\":[" + outputs + "]";
    op_.nanoseconds = {nanoseconds};
    op_.workspace = std::max<std::int64_t>(0, peak);
    ops_.push_back(std::move(op_));
}

void StepTrace::finish(const Wanted& wanted) {
    allUntold();
    noteReleases(wanted, untold_.size());
    const std::vector<c10::StorageImpl*> stays = alive();
    std::vector<std::int64_t> finals;
    for (c10::StorageImpl* const impl : stays)
        finals.push_back(first_[static_cast<std::size_t>(storages_.at(impl).index)]);
    std::sort(finals.begin(), finals.end());
    finals_ = listOf(finals);
    // What was there at the beginning may have gone without an op, as gradients do.
    profiler::native::OpWindow window;
    agent_.begin(&window);
    std::int64_t atEnd = window.liveBefore;
    for (c10::StorageImpl* const impl : stays)
        if (const auto* const bytes = impl->data_ptr().get(); bytes != nullptr)
            atEnd -=
                std::max<std::int64_t>(0, agent_.block(reinterpret_cast<std::uint64_t>(bytes)));
    untouched_ = std::min(untouched_, atEnd);
    storages_.clear();
    untold_.clear();
}

std::int64_t StepTrace::layerOf(std::int64_t op, const std::string& name) const {
    if (op < 0 || op >= static_cast<std::int64_t>(ops_.size())) return -1;
    const Op& known = ops_[static_cast<std::size_t>(op)];
    return known.name == name ? known.layer : -1;
}

bool StepTrace::merge(const StepTrace& later) {
    const bool same =
        events_ == later.events_ && tensors_ == later.tensors_ && bytes_ == later.bytes_ &&
        finals_ == later.finals_ && ops_.size() == later.ops_.size() &&
        std::equal(ops_.begin(), ops_.end(), later.ops_.begin(),
                   [](const Op& one, const Op& other) { return one.text == other.text; });
    if (!same) return false;
    for (std::size_t i = 0; i < ops_.size(); ++i) {
        ops_[i].nanoseconds.push_back(later.ops_[i].nanoseconds.front());
        ops_[i].workspace = std::min(ops_[i].workspace, later.ops_[i].workspace);
    }
    untouched_ = std::max(untouched_, later.untouched_);
    return true;
}

std::string StepTrace::json() const {
    std::string ops;
    for (const Op& op : ops_) {
        std::vector<std::int64_t> times = op.nanoseconds;
        const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
        std::nth_element(times.begin(), middle, times.end());
        append(ops, op.text + ",\"ns\":" + std::to_string(*middle) +
                        ",\"workspace\":" + std::to_string(op.workspace) + "}");
    }
    std::string tensors, layers;
    for (std::size_t i = 0; i < tensors_.size(); ++i)
        append(tensors, tensors_[i] + "," + std::to_string(offsets_[i]) + "]");
    for (const std::string& path : place_.paths()) append(layers, profiler::native::quoted(path));
    return "{\"ops\":[" + ops + "],\n\"layers\":[" + layers + "],\n\"parameters\":[" + parameters_ +
           "],\n\"storages\":[" + bytes_ + "],\n\"tensors\":[" + tensors + "],\n\"events\":[" +
           constants_ + (constants_.empty() ? "" : ",\n") + events_ + "],\n\"finals\":" + finals_ +
           ",\n\"untouched\":" + std::to_string(std::max<std::int64_t>(0, untouched_)) + "}\n";
}

}  // namespace hw::live::runtime
