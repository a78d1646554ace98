// SPDX-License-Identifier: MIT
#include "operators.h"

#include <ATen/core/enum_tag.h>
#include <ATen/core/jit_type.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstdio>
#include <memory>
#include <mutex>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

#include "unseen_writes.h"

namespace hw::profiler::native {
namespace {

// Change the tensor's metadata, not the bytes of its storage.
const std::unordered_set<std::string> kMetadataOps{
    "t_",      "transpose_", "squeeze_",   "unsqueeze_", "swapdims_",  "swapaxes_", "as_strided_",
    "detach_", "resize_",    "resize_as_", "set_",       "swap_dims_", "movedim_",  "rename_"};
// Consume a generator without a tag or an argument that says so in some versions.
const std::unordered_set<std::string> kRandomOps{
    "_fused_dropout", "native_dropout", "rrelu_with_noise", "rrelu_with_noise_", "_standard_gamma",
    "poisson",        "binomial",       "multinomial",      "_sample_dirichlet", "randperm"};

/// Whether the op writes the argument without saying so in its schema: noise, and the state from
/// which cuDNN drops out.
bool writesUnsaid(const std::string& op, const std::string& argument) {
    const bool backward = op.size() > 8 && op.compare(op.size() - 8, 8, "backward") == 0;
    return (argument == "noise" && op.rfind("rrelu_with_noise", 0) == 0 && !backward) ||
           (argument == "dropout_state" && op == "_cudnn_rnn") ||
           (argument == "workspace" && op == "mkldnn_rnn_layer_backward");
}

/// Not of the framework: it may draw random numbers and keep a state without saying so.
bool isForeignOp(const std::string& name) {
    static const std::unordered_set<std::string> kOwn{
        "aten", "prims", "prim", "profiler", "quantized", "c10d", "_c10d_functional"};
    return kOwn.count(name.substr(0, name.find(':'))) == 0;
}

/// A kernel that torch.compile has made, put into an op by shim/fused_kernels.py: it writes nothing
/// but what it is given and makes, and random numbers come to it as an argument.
bool isFused(const std::string& name) {
    return name.rfind("inductor_fused::", 0) == 0;
}

std::atomic<std::uint32_t> gKernelsChanged{1};

/// Calls `each` with the file that has registered a kernel for a device, as the dispatcher tells
/// it; of a script in Python "/dev/null" in torch 1.
template <class Each>
void eachKernel(const c10::OperatorHandle& op, const Each& each) {
    static const std::string kAt = "registered at ";
    std::istringstream table(op.dumpComputedTable());
    for (std::string line; std::getline(table, line);) {
        if (line.rfind("CPU: ", 0) != 0 && line.rfind("CUDA: ", 0) != 0) continue;
        if (const std::size_t at = line.find(kAt); at != std::string::npos)
            each(line.substr(at + kAt.size(), line.rfind(':') - at - kAt.size()));
    }
}

bool isCpp(const std::string& file) {
    static const std::unordered_set<std::string> kSuffixes{"c", "cc", "cpp", "cu",  "cuh", "cxx",
                                                           "h", "hh", "hip", "hpp", "inl"};
    return kSuffixes.count(file.substr(file.rfind('.') + 1)) != 0;
}

bool isOfFramework(const std::string& file) {
    return file.find("aten/src/ATen/") != std::string::npos ||
           file.find("torch/csrc/") != std::string::npos;
}

c10::TypeKind kindOf(const c10::Type& type) {
    if (const auto optional = type.castRaw<c10::OptionalType>())
        return kindOf(*optional->getElementType());
    return type.kind();
}

}  // namespace

bool adoptsStorage(const std::string& name, const std::string& overload) {
    return name == "aten::set_" && overload.rfind("source_Storage", 0) == 0;
}

std::string quoted(const std::string& text) {
    std::string result = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            result += '\\';
            result += c;
        } else if (byte < 0x20) {
            char escape[8];
            std::snprintf(escape, sizeof(escape), "\\u%04x", byte);
            result += escape;
        } else {
            result += c;
        }
    }
    return result + '"';
}

void kernelsChanged() {
    gKernelsChanged.fetch_add(1, std::memory_order_relaxed);
}

bool Operator::has(std::uint32_t bit) const {
    std::uint32_t kernels = kernels_.load(std::memory_order_relaxed);
    const std::uint32_t changed = gKernelsChanged.load(std::memory_order_relaxed);
    if (kernels / kGeneration != changed) {
        kernels = changed * kGeneration;
        if (!isFused(name)) {
            if (isForeignOp(name)) kernels |= kForeign;
            eachKernel(handle_, [&](const std::string& file) {
                if (!isOfFramework(file)) kernels |= kForeign;
                if (!isCpp(file)) kernels |= kPython;
            });
        }
        kernels_.store(kernels, std::memory_order_relaxed);
    }
    return (kernels & bit) != 0;
}

Operator::Operator(const c10::OperatorHandle& op) : schema(&op.schema()), handle_(op) {
    name = schema->name();
    overload = schema->overload_name();
    for (const std::string* text : {&name, &overload}) {
        const auto size = static_cast<std::uint32_t>(text->size());
        encoded.append(reinterpret_cast<const char*>(&size), sizeof(size)) += *text;
    }
    const std::string plain = name.substr(name.rfind(':') + 1);
    const bool metadata = kMetadataOps.count(plain) != 0 || op.hasTag(at::Tag::inplace_view);
    random = kRandomOps.count(plain) != 0 || op.hasTag(at::Tag::nondeterministic_seeded);
    for (std::size_t i = 0; i < schema->arguments().size(); ++i) {
        const c10::Argument& argument = schema->arguments()[i];
        const auto& standard = argument.default_value();
        arguments.push_back({quoted(argument.name()) + ':', kindOf(*argument.real_type()),
                             argument.kwarg_only(), standard ? &*standard : nullptr});
        const bool writes_ = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
        if ((writes_ && !metadata) || writesUnsaid(plain, argument.name())) writes.push_back(i);
        if (argument.type()->str().find("Generator") != std::string::npos) random = true;
    }
    const auto has = [&op](c10::DispatchKey key) { return op.hasKernelForDispatchKey(key); };
    profiler = name.rfind("profiler::", 0) == 0;
    onlyFills = native::onlyFills(name);
    adopts = adoptsStorage(name, overload);
    composite = has(c10::DispatchKey::CompositeImplicitAutograd);
    onCpu = has(c10::DispatchKey::CPU);
    onCuda = has(c10::DispatchKey::CUDA);
    results = schema->returns().size();
}

/// Ops are known by their schema, which stays where it is.
const Operator& operatorOf(const c10::OperatorHandle& handle) {
    static std::mutex lock;
    static std::unordered_map<const c10::FunctionSchema*, std::unique_ptr<Operator>> known;
    const std::lock_guard<std::mutex> guard(lock);
    std::unique_ptr<Operator>& op = known[&handle.schema()];
    if (op == nullptr) op = std::make_unique<Operator>(handle);
    return *op;
}

const Operator& Operators::of(const c10::OperatorHandle& handle) {
    const c10::FunctionSchema* const key = &handle.schema();
    auto& slot = recent_[(reinterpret_cast<std::uintptr_t>(key) >> 4) % recent_.size()];
    if (slot.first != key) slot = {key, &operatorOf(handle)};
    return *slot.second;
}

bool takesDimensionNames(const c10::OperatorName& op) {
    static const std::unordered_set<std::string> kNamed{"aten::rename", "aten::rename_",
                                                        "aten::refine_names", "aten::align_to"};
    return op.overload_name.find("ame") != std::string::npos || kNamed.count(op.name) != 0;
}

}  // namespace hw::profiler::native
