// SPDX-License-Identifier: MIT
#include "executor/replay/step.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/base/bits.h"

namespace hw::executor {
namespace {

using core::badInput;
using core::StorageIndex;
using core::TensorIndex;
using Json = nlohmann::json;

constexpr std::int64_t kMostThreads = 1024;

Environment parseEnvironment(const std::string& text) {
    Environment environment;
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_object()) return environment;
    const auto boolean = [&](const char* key) -> std::optional<bool> {
        const auto at = json.find(key);
        return at != json.end() && at->is_boolean() ? std::optional(at->get<bool>()) : std::nullopt;
    };
    if (const auto at = json.find("num_threads"); at != json.end() && at->is_number_integer())
        if (const auto threads = at->get<std::int64_t>(); threads > 0 && threads <= kMostThreads)
            environment.threads = static_cast<int>(threads);
    if (const auto at = json.find("default_dtype"); at != json.end() && at->is_string())
        environment.defaultDtype = at->get<std::string>();
    environment.mkldnn = boolean("mkldnn");
    environment.deterministic = boolean("deterministic");
    return environment;
}

std::optional<std::vector<std::int64_t>> parseIntegers(const std::string& text) {
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_array()) return std::nullopt;
    std::vector<std::int64_t> values;
    for (const Json& item : json) {
        if (!item.is_number_integer()) return std::nullopt;
        values.push_back(item.get<std::int64_t>());
    }
    return values;
}

core::Status loadShapes(const core::Session& session, Step& step) {
    auto rows = session.tensors();
    if (!rows) return rows.error();
    for (TensorIndex t = 0; t < static_cast<TensorIndex>(step.graph.tensors.size()); ++t)
        if (step.graph.tensors[t].sessionId != core::kNone)
            step.tensorOf[step.graph.tensors[t].sessionId] = t;
    step.shapes.resize(step.graph.tensors.size());
    for (const core::TensorRow& row : *rows) {
        const auto at = step.tensorOf.find(row.id);
        if (at == step.tensorOf.end()) continue;
        auto sizes = parseIntegers(row.sizes), strides = parseIntegers(row.strides);
        if (row.dtype.empty() || !sizes || !strides || sizes->size() != strides->size())
            return badInput("tensor " + std::to_string(row.id) + " of the session has no shape",
                            "only a session recorded with 'highwater record' can be run");
        step.shapes[at->second] = {row.dtype, std::move(*sizes), std::move(*strides), row.offset};
    }
    return {};
}

core::Status loadConstants(const core::Session& session, Step& step) {
    for (StorageIndex s = 0; s < static_cast<StorageIndex>(step.graph.storages.size()); ++s) {
        const core::Storage& storage = step.graph.storages[s];
        if (!storage.isConstant()) continue;
        auto bytes = session.contents(step.id, storage.sessionId);
        if (!bytes) return bytes.error();
        if (!bytes->empty()) step.contents[s] = std::move(*bytes);
    }
    return {};
}

// The one device other than the CPU that a step used, "cpu" without.
core::Result<std::string> recordedDevice(const core::Session& session) {
    auto devices = session.storageDevices();
    if (!devices) return devices.error();
    std::erase_if(*devices, [](const std::string& name) { return name.starts_with("cpu"); });
    if (devices->size() > 1)
        return badInput("session '" + session.path() + "' was recorded on several devices",
                        "only steps of one device can be run");
    return devices->empty() ? "cpu" : devices->front();
}

core::Status requireArguments(const core::Session& session, const Step& step) {
    const std::string hint =
        "only a session recorded with 'highwater record' can be run; plan and check work without";
    for (std::size_t i = 0; i < step.ops.size(); ++i)
        if (step.ops[i].args.empty())
            return badInput("session '" + session.path() + "' has no arguments to replay (op " +
                                std::to_string(i) + ", " + step.ops[i].name + ")",
                            hint);
    return {};
}

core::Status requireDevice(const core::Session& session, const Step& step, Device device) {
    const bool gpu = step.recordedOn.starts_with("cuda");
    if (step.recordedOn != "cpu" && !(gpu && device == Device::Cuda))
        return badInput("session '" + session.path() + "' was recorded on " + step.recordedOn,
                        gpu ? "run it with --device cuda" : "no executor runs that device's ops");
    return {};
}

std::string frameworkVersion(const core::Session& session) {
    const auto processes = session.processes();
    return processes && !processes->empty() ? processes->front().frameworkVersion : "";
}

}  // namespace

core::Result<Step> loadStep(const core::Session& session, std::int64_t id,
                            std::optional<core::CostSet> costs, Device device) {
    auto graph = core::loadGraph(session, id, costs);
    if (!graph) return graph.error();
    auto ops = session.ops(id);
    if (!ops) return ops.error();
    Step step;
    step.id = id;
    step.graph = std::move(*graph);
    step.ops = std::move(*ops);
    if (step.ops.size() != step.graph.ops.size())
        return badInput(
            "session '" + session.path() + "': step " + std::to_string(id) + " contradicts itself",
            "record it again");
    HW_TRY(requireArguments(session, step));
    auto recordedOn = recordedDevice(session);
    if (!recordedOn) return recordedOn.error();
    step.recordedOn = std::move(*recordedOn);
    HW_TRY(requireDevice(session, step, device));
    HW_TRY(loadShapes(session, step));
    HW_TRY(loadConstants(session, step));
    auto generators = session.generators(id);
    if (!generators) return generators.error();
    step.generators = std::move(*generators);
    auto steps = session.steps();
    if (!steps) return steps.error();
    for (const core::StepRow& row : *steps)
        if (row.id == id) step.environment = parseEnvironment(row.environment);
    step.frameworkVersion = frameworkVersion(session);
    return step;
}

std::string layerOf(const core::TrainingGraph& graph, core::OpIndex op) {
    const core::LayerIndex layer = graph.ops[op].layer;
    return layer == core::kNone ? std::string() : graph.layers[layer].path;
}

ElementKind elementKind(const std::string& dtype) {
    if (dtype == "float32" || dtype == "complex64") return ElementKind::Float;
    if (dtype == "float64" || dtype == "complex128") return ElementKind::Double;
    if (dtype == "float16" || dtype == "complex32") return ElementKind::Half;
    if (dtype == "bfloat16") return ElementKind::BFloat16;
    return ElementKind::Other;
}

namespace {

// Evenly spread in [0, 1) by position and storage.
double spread(std::uint64_t storage, std::uint64_t position) {
    std::uint64_t x = (storage + 1) * 0x9e3779b97f4a7c15ull + position * 0xd1342543de82ef95ull;
    x = (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9ull;
    x ^= x >> 29;
    return static_cast<double>(x >> 40) * 0x1p-24;
}

std::uint16_t toHalf(float value) {  // normal numbers only, which is all that fillConstant makes
    const auto bits = core::bitCast<std::uint32_t>(value);
    const int exponent = static_cast<int>((bits >> 23) & 0xff) - 127 + 15;
    if (exponent <= 0) return 0;
    return static_cast<std::uint16_t>(((bits >> 16) & 0x8000) | (exponent << 10) |
                                      ((bits >> 13) & 0x3ff));
}

void put(ElementKind kind, std::byte* at, double value) {
    const auto single = static_cast<float>(value);
    if (kind == ElementKind::Double) std::memcpy(at, &value, 8);
    if (kind == ElementKind::Float) std::memcpy(at, &single, 4);
    const std::uint16_t narrow =
        kind == ElementKind::Half
            ? toHalf(single)
            : static_cast<std::uint16_t>(core::bitCast<std::uint32_t>(single) >> 16);
    if (kind == ElementKind::Half || kind == ElementKind::BFloat16) std::memcpy(at, &narrow, 2);
}

std::size_t widthOf(ElementKind kind) {
    if (kind == ElementKind::Double) return 8;
    return kind == ElementKind::Float ? 4 : 2;
}

}  // namespace

void fillConstant(const Step& step, StorageIndex s, Span<std::byte> bytes) {
    std::fill(bytes.begin(), bytes.end(), std::byte{0});
    if (const auto at = step.contents.find(s); at != step.contents.end()) {
        std::copy_n(at->second.begin(), std::min(bytes.size(), at->second.size()), bytes.begin());
        return;
    }
    const core::Storage& storage = step.graph.storages[s];
    const TensorShape* shape = nullptr;
    for (const TensorIndex t : storage.tensors)
        if (!shape && !step.shapes[t].dtype.empty()) shape = &step.shapes[t];
    const ElementKind kind = shape ? elementKind(shape->dtype) : ElementKind::Other;
    if (kind == ElementKind::Other) return;

    double low = 0.01, high = 0.05;
    if (storage.category == core::Category::Input) low = 0, high = 1;
    if (storage.isParameter()) {
        if (shape->sizes.size() >= 2) {
            double fanIn = 1;
            for (std::size_t d = 1; d < shape->sizes.size(); ++d)
                fanIn *= static_cast<double>(shape->sizes[d]);
            high = std::sqrt(3.0 / std::max(fanIn, 1.0));
            low = -high;
        } else {
            low = 0.5, high = 1;
        }
    }
    const std::size_t width = widthOf(kind);
    const auto seed = static_cast<std::uint64_t>(storage.sessionId);
    for (std::size_t i = 0; i < bytes.size() / width; ++i)
        put(kind, bytes.data() + i * width, low + (high - low) * spread(seed, i));
}

}  // namespace hw::executor
