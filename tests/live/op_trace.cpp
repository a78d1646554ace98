// SPDX-License-Identifier: MIT
#include "tests/live/op_trace.h"

#include <ATen/Context.h>

#include <algorithm>
#include <sstream>

#include "call.h"
#include "registry.h"

namespace hw::test {

using namespace core;
using live::runtime::eachTensor;
using live::runtime::plainStorage;
using live::runtime::Values;

namespace {

std::vector<at::Tensor> plainTensors(Values values) {
    std::vector<at::Tensor> tensors;
    eachTensor(values, [&](const at::Tensor& each) {
        if (plainStorage(each) != nullptr) tensors.push_back(each);
    });
    return tensors;
}

std::string list(at::IntArrayRef numbers) {
    std::ostringstream text;
    text << "[";
    for (std::size_t i = 0; i < numbers.size(); ++i) text << (i == 0 ? "" : ",") << numbers[i];
    text << "]";
    return text.str();
}

at::Tensor generatorState() {
    return at::globalContext().defaultGenerator(at::kCPU).get_state();
}

}  // namespace

OpTrace::Known& OpTrace::known(const at::Tensor& tensor, OpIndex creator) {
    c10::StorageImpl* const impl = plainStorage(tensor);
    const auto found = storages_.find(impl);
    if (found != storages_.end()) return found->second;
    const auto index = static_cast<StorageIndex>(graph_.storages.size());
    Storage storage;
    storage.bytes = Bytes(static_cast<std::int64_t>(impl->nbytes()));
    graph_.storages.push_back(storage);
    if (creator == kNone) graph_.events.push_back({Event::Kind::Constant, index});
    c10::raw::weak_intrusive_ptr::incref(impl);
    return storages_
        .emplace(impl, Known{index, c10::weak_intrusive_ptr<c10::StorageImpl>::reclaim(impl)})
        .first->second;
}

TensorIndex OpTrace::tensor(const at::Tensor& tensor) {
    TensorRow row;
    row.dtype = profiler::native::dtypeName(tensor.scalar_type());
    row.sizes = list(tensor.sizes());
    row.strides = list(tensor.strides());
    row.offset = tensor.storage_offset();
    const StorageIndex storage = storages_.at(plainStorage(tensor)).index;
    const auto [at, isNew] = tensors_.try_emplace(
        {storage, row.dtype + row.sizes + row.strides + std::to_string(row.offset)},
        static_cast<TensorIndex>(graph_.tensors.size()));
    if (isNew) {
        row.id = at->second;
        rows_.push_back(row);
        graph_.tensors.push_back({storage, kNone, row.id});
    }
    return at->second;
}

void OpTrace::noteReleases() {
    std::vector<StorageIndex> gone;
    for (auto& [impl, each] : storages_)
        if (!each.gone && each.weak.expired()) {
            each.gone = true;
            gone.push_back(each.index);
        }
    std::sort(gone.begin(), gone.end());
    for (const StorageIndex storage : gone)
        graph_.events.push_back({Event::Kind::Release, storage});
}

void OpTrace::op(const c10::OperatorHandle& handle, c10::DispatchKeySet below,
                 torch::jit::Stack* stack) {
    noteReleases();
    const c10::FunctionSchema& schema = handle.schema();
    Op made;
    made.name = schema.name();
    if (!schema.overload_name().empty()) made.name += "." + schema.overload_name();
    made.time = Nanoseconds(1);
    const Values arguments = torch::jit::last(*stack, schema.arguments().size());
    std::vector<c10::StorageImpl*> written;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const c10::AliasInfo* const alias = schema.arguments()[i].alias_info();
        for (const at::Tensor& each : plainTensors(arguments.slice(i, 1))) {
            const Known& storage = known(each, kNone);
            made.inputs.push_back({tensor(each), storage.version});
            if (alias == nullptr || !alias->isWrite()) continue;
            made.writes.push_back({storage.index, storage.version});
            written.push_back(plainStorage(each));
        }
    }
    const auto index = static_cast<OpIndex>(graph_.ops.size());
    const at::Tensor before = generatorState();
    handle.redispatchBoxed(below, stack);
    made.random = !before.equal(generatorState());
    for (c10::StorageImpl* const impl : written) ++storages_.at(impl).version;
    for (const at::Tensor& each : plainTensors(torch::jit::last(*stack, schema.returns().size()))) {
        const std::size_t count = storages_.size();
        known(each, index);
        made.outputs.push_back({tensor(each), storages_.size() > count});
    }
    graph_.events.push_back({Event::Kind::Compute, index});
    graph_.ops.push_back(std::move(made));
}

TrainingGraph OpTrace::finish() {
    noteReleases();
    std::vector<TensorIndex> finals(graph_.storages.size(), kNone);
    for (TensorIndex t = 0; t < static_cast<TensorIndex>(graph_.tensors.size()); ++t)
        if (TensorIndex& first = finals[graph_.tensors[t].storage]; first == kNone) first = t;
    for (const auto& [impl, each] : storages_)
        if (!each.gone) graph_.finalTensors.push_back(finals[each.index]);
    std::sort(graph_.finalTensors.begin(), graph_.finalTensors.end());
    graph_.recorded = true;
    const std::string wrong = graph_.finish();
    TORCH_CHECK(wrong.empty(), wrong);
    return graph_;
}

}  // namespace hw::test
