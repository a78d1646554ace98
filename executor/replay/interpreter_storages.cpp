// SPDX-License-Identifier: MIT
#include <algorithm>

#include "executor/replay/codec.h"
#include "executor/replay/interpreter_state.h"

namespace hw::executor {

bool fits(const TensorShape& shape, std::size_t elementBytes, std::size_t bytes) {
    const auto room = static_cast<std::int64_t>(bytes / elementBytes);
    std::int64_t last = shape.offset;  // element
    bool empty = false, inside = shape.offset >= 0 && shape.offset < room;
    for (std::size_t d = 0; d < shape.sizes.size(); ++d) {
        const std::int64_t size = shape.sizes[d], stride = shape.strides[d];
        if (size < 0 || stride < 0) return false;
        empty = empty || size == 0;
        if (!inside || size <= 1 || stride == 0) continue;
        inside = size - 1 <= (room - 1 - last) / stride;
        if (inside) last += (size - 1) * stride;
    }
    return empty || inside;
}

// A tensor as it was recorded, on its resident storage.
Status Interpreter::State::defineFromRecord(TensorIndex t) {
    if (graph.tensors[t].sessionId == kNone) return {};
    const TensorShape& shape = step.shapes[t];
    const c10::Storage& storage = storages[graph.storageOf(t)];
    const auto dtype = torch::dtypeFromName(shape.dtype);
    if (!dtype)
        return core::badInput("a tensor of the session has the unknown type '" + shape.dtype + "'",
                              "this executor cannot run it");
    if (!fits(shape, c10::elementSize(*dtype), storage.nbytes()))
        return core::badInput("tensor " + std::to_string(graph.tensors[t].sessionId) +
                                  " of the session is larger than its storage",
                              "record the session again");
    tensors[t] = torch::makeView(storage, *dtype, shape.sizes, shape.strides, shape.offset);
    return {};
}

// What the tensor that came with a storage says of it.
ElementType Interpreter::State::elementsOf(StorageIndex s) const {
    const std::string& dtype = step.shapes[graph.storages[s].tensors.front()].dtype;
    const auto type = torch::dtypeFromName(dtype);
    return {type ? c10::elementSize(*type) : 1, elementKind(dtype)};
}

Error Interpreter::State::codecFailed(StorageIndex s, const Error& error) const {
    const OpIndex creator = graph.storages[s].creator;
    return {error.code,
            "storage " + std::to_string(s) +
                (creator == kNone ? " (a constant)" : ", made by " + labels[creator] + ",") +
                " cannot be encoded as planned: " + error.what,
            error.hint};
}

// Constants come into being where they did in the capture, with their first contents.
Status Interpreter::State::placeConstants() {
    const auto begin = Clock::now();
    static const std::vector<ArenaSlot> noSlots;
    for (; constantsPlaced < constants.size() &&
           constants[constantsPlaced].fixedOpsBefore <= fixedDone;
         ++constantsPlaced) {
        const StorageIndex s = constants[constantsPlaced].storage;
        const std::string name = "constant " + std::to_string(s);
        std::vector<ArenaSlot> slot;
        if (options.arena)
            if (const auto at = options.arena->constants.find(s);
                at != options.arena->constants.end())
                slot.push_back(at->second);
        tracker.beginWindow(&name, options.arena ? &slot : nullptr, false);
        storages[s] = torch::makeStorage(static_cast<std::size_t>(graph.storages[s].bytes.count()));
        tracker.endWindow();
        if (storages[s].nbytes() > 0)
            (void)torch::writeStorage(storages[s], [&](Span<std::byte> bytes) {
                fill(s, bytes);
                return Status();
            });
        for (const TensorIndex t : graph.storages[s].tensors) {
            if (graph.tensors[t].creator != kNone) continue;
            if (Status ok = defineFromRecord(t); !ok) return ok;
        }
    }
    constantsTime += since(begin);
    return {};
}

void Interpreter::State::fill(StorageIndex s, Span<std::byte> bytes) {
    if (options.from)
        if (const auto at = options.from->contents.find(s); at != options.from->contents.end()) {
            std::copy_n(at->second.begin(), std::min(bytes.size(), at->second.size()),
                        bytes.begin());
            return;
        }
    fillConstant(step, s, bytes);
}

// The other form of a storage, from the place that the arena has for it.
core::Result<c10::Storage> Interpreter::State::makeForm(std::size_t at, StorageIndex s,
                                                        Bytes bytes) {
    const std::string label =
        "action " + std::to_string(at) + " (another form of storage " + std::to_string(s) + ")";
    tracker.beginWindow(&label, options.arena ? &options.arena->actions[at] : nullptr, false);
    c10::Storage form = torch::makeStorage(static_cast<std::size_t>(bytes.count()));
    tracker.endWindow();
    return form;
}

Status Interpreter::State::encode(std::size_t at, const Action& action) {
    const StorageIndex s = action.target;
    auto form = makeForm(at, s, action.encoding->bytes);
    if (!form) return form.error();
    torch::HostView host;
    const auto plain = host.of(storages[s]);
    const Status ok = torch::writeStorage(*form, [&](Span<std::byte> into) {
        return executor::encode(action.encoding->codec, elementsOf(s), plain, into);
    });
    if (!ok) return codecFailed(s, ok.error());
    free(s);
    encoded[s] = {std::move(*form), action.encoding->codec};
    return {};
}

// Views do not survive an encoding: the tensor that came with the storage is all that comes back,
// and, of a constant, those that no op makes.
Status Interpreter::State::decode(std::size_t at, const Action& action) {
    const StorageIndex s = action.target;
    auto plain = makeForm(at, s, graph.storages[s].bytes);
    if (!plain) return plain.error();
    const EncodedForm& form = encoded[s];
    torch::HostView host;
    const auto bytes = host.of(form.bytes);
    const Status ok = torch::writeStorage(*plain, [&](Span<std::byte> into) {
        return executor::decode(form.codec, elementsOf(s), bytes, into);
    });
    if (!ok) return codecFailed(s, ok.error());
    encoded.erase(s);
    storages[s] = std::move(*plain);
    for (const TensorIndex t : graph.storages[s].tensors)
        if (t == graph.storages[s].tensors.front() || graph.tensors[t].creator == kNone)
            if (Status ok = defineFromRecord(t); !ok) return ok;
    return {};
}

// The executor copies at once: what a link would do meanwhile is the judge's to say.
void Interpreter::State::offload(StorageIndex s) {
    torch::HostView host;
    const auto bytes = host.of(storages[s]);
    hostCopies[s].bytes.assign(bytes.begin(), bytes.end());
}

Status Interpreter::State::prefetch(std::size_t at, StorageIndex s) {
    auto plain = makeForm(at, s, graph.storages[s].bytes);
    if (!plain) return plain.error();
    const std::vector<std::byte> copy = std::move(hostCopies.extract(s).mapped().bytes);
    const Status ok = torch::writeStorage(*plain, [&](Span<std::byte> into) {
        std::copy(copy.begin(), copy.end(), into.begin());
        return Status();
    });
    if (!ok) return ok;
    c10::StorageImpl& away = *storages[s].unsafeGetStorageImpl();
    away.set_data_ptr_noswap(
        plain->unsafeGetStorageImpl()->set_data_ptr(c10::DataPtr(nullptr, away.device())));
    return {};
}

// What has a copy in host memory leaves that behind, with its tensors.
void Interpreter::State::free(StorageIndex s) {
    if (encoded.erase(s) > 0) return;
    if (const auto copy = hostCopies.find(s); copy != hostCopies.end() && resident(s)) {
        copy->second.standsIn = true;
        c10::StorageImpl& leaves = *storages[s].unsafeGetStorageImpl();
        leaves.set_data_ptr_noswap(c10::DataPtr(nullptr, leaves.device()));
        return;
    }
    hostCopies.erase(s);
    for (const TensorIndex t : graph.storages[s].tensors) tensors[t].reset();
    if (resident(s) && storages[s].use_count() > 1)
        result.held.push_back("storage " + std::to_string(s) + " is kept alive past its release");
    storages[s] = c10::Storage();
}

FinalState Interpreter::State::finalState(torch::HostView& host) {
    FinalState state;
    for (const TensorIndex t : graph.finalTensors) {
        const StorageIndex s = graph.storageOf(t);
        state.tensors.push_back(tensors[t].defined() ? host.of(tensors[t])
                                                     : TensorBytes{nullptr, 1, {}, {0}, {1}});
        if (std::none_of(state.storages.begin(), state.storages.end(),
                         [&](auto& pair) { return pair.first == s; }))
            state.storages.emplace_back(s, host.of(storages[s]));
    }
    for (auto& [id, generator] : generators) state.generators.push_back(torch::stateOf(generator));
    return state;
}

}  // namespace hw::executor
