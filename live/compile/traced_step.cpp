// SPDX-License-Identifier: MIT
#include "live/compile/traced_step.h"

#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace hw::live {

namespace {

using namespace core;
using Document = nlohmann::json;

/// A tree from the paths of modules, in the order in which they were met.
class Layers {
public:
    explicit Layers(std::vector<Layer>& layers) : layers_(layers) {}

    LayerIndex of(const std::string& path) {
        const auto known = numbers_.find(path);
        if (known != numbers_.end()) return known->second;
        LayerIndex parent = kNone;
        if (path != kRoot) {
            const std::size_t dot = path.rfind('.');
            parent = of(dot == std::string::npos || dot == 0 ? kRoot : path.substr(0, dot));
        }
        layers_.push_back({path, {}, parent});
        return numbers_[path] = static_cast<LayerIndex>(layers_.size() - 1);
    }

private:
    static constexpr const char* kRoot = "(root)";
    std::vector<Layer>& layers_;
    std::map<std::string, LayerIndex> numbers_;
};

core::Phase phaseOf(const Document& traced) {
    const int phase = traced.value("phase", 0);
    const bool known = phase >= 0 && phase <= static_cast<int>(core::Phase::Optimizer);
    return known ? static_cast<core::Phase>(phase) : core::Phase::Unknown;
}

TrainingGraph& graphOf(TracedStep& step) {
    return step.graph;
}
TrainingGraph& graphOf(TracedRegion& traced) {
    return traced.step.graph;
}

/// Trusts the trace; the caller checks the result. Throws Document::exception where something is
/// missing or of another type.
TracedStep read(const Document& json) {
    TracedStep trace;
    TrainingGraph& graph = trace.graph;
    graph.framework = "pytorch";
    graph.recorded = true;
    trace.untouched = Bytes(json.at("untouched").get<std::int64_t>());
    for (const Document& bytes : json.at("storages")) {
        Storage storage;
        storage.bytes = Bytes(bytes.get<std::int64_t>());
        graph.storages.push_back(std::move(storage));
    }
    for (const Document& tensor : json.at("tensors")) {
        TensorRow row;
        row.id = static_cast<std::int64_t>(trace.tensors.size());
        row.storage = tensor.at(0).get<std::int64_t>();
        row.dtype = tensor.at(1).get<std::string>();
        row.sizes = tensor.at(2).dump();
        row.strides = tensor.at(3).dump();
        row.offset = tensor.at(4).get<std::int64_t>();
        graph.tensors.push_back({static_cast<StorageIndex>(row.storage), kNone, row.id});
        trace.tensors.push_back(std::move(row));
    }
    for (const Document& parameter : json.value("parameters", Document::array()))
        graph.storages.at(parameter.get<std::size_t>()).category = Category::Parameter;
    std::vector<LayerIndex> layers;
    Layers tree(graph.layers);
    for (const Document& path : json.value("layers", Document::array()))
        layers.push_back(tree.of(path.get<std::string>()));
    for (const Document& traced : json.at("ops")) {
        Op op;
        op.phase = phaseOf(traced);
        if (const auto layer = traced.value("layer", std::int64_t{-1}); layer >= 0)
            op.layer = layers.at(static_cast<std::size_t>(layer));
        op.name = traced.at("name").get<std::string>();
        op.random = traced.at("random").get<bool>();
        op.opaque = traced.value("once", false);
        op.time = Nanoseconds(traced.at("ns").get<std::int64_t>());
        op.workspace = Bytes(traced.at("workspace").get<std::int64_t>());
        for (const Document& use : traced.at("inputs"))
            op.inputs.push_back({use.at(0).get<TensorIndex>(), use.at(1).get<std::int32_t>()});
        for (const Document& output : traced.at("outputs"))
            op.outputs.push_back({output.at(0).get<TensorIndex>(), output.at(1).get<int>() != 0});
        for (const Document& write : traced.at("writes"))
            op.writes.push_back({write.at(0).get<StorageIndex>(), write.at(1).get<std::int32_t>()});
        graph.ops.push_back(std::move(op));
    }
    for (const Document& event : json.at("events")) {
        const auto kind = event.at(0).get<std::string>();
        graph.events.push_back({kind == "constant" ? Event::Kind::Constant
                                : kind == "op"     ? Event::Kind::Compute
                                                   : Event::Kind::Release,
                                event.at(1).get<std::int32_t>()});
    }
    for (const Document& tensor : json.at("finals"))
        graph.finalTensors.push_back(tensor.get<TensorIndex>());
    return trace;
}

/// Errors: BadInput, as what `read` throws.
template <class Traced, class Read>
Result<Traced> readJson(std::string_view json, const Read& read) {
    const auto bad = [](const std::string& why) {
        return badInput("the step was not traced as it should be: " + why,
                        "DTR goes on without a plan");
    };
    const Document parsed = Document::parse(json, nullptr, false);
    if (parsed.is_discarded()) return bad("no JSON");
    try {
        Traced traced = read(parsed);
        if (std::string wrong = graphOf(traced).finish(); !wrong.empty()) return bad(wrong);
        return traced;
    } catch (const Document::exception& error) {
        return bad(error.what());
    } catch (const std::out_of_range&) {
        return bad("it names what it does not hold");
    }
}

TracedRegion readRegion(const Document& json) {
    TracedRegion traced;
    traced.step = read(json);
    TrainingGraph& graph = traced.step.graph;
    graph.recorded = false;  // what it is given is not its own to keep
    if (const Document& most = json.at("most_kept"); !most.is_null())
        traced.mostKept = Bytes(most.get<std::int64_t>());
    if (!json.at("backward").is_null()) traced.backward = json["backward"];
    for (const Document& op : json["ops"]) traced.fusible.push_back(op.at("fusible"));
    for (const Document& storage : json.at("kept")) {
        traced.kept.push_back(storage.get<StorageIndex>());
        static_cast<void>(graph.storages.at(static_cast<std::size_t>(traced.kept.back())));
    }
    return traced;
}

}  // namespace

Result<TracedStep> readTracedStep(std::string_view json) {
    return readJson<TracedStep>(json, read);
}

Result<TracedRegion> readTracedRegion(std::string_view json) {
    return readJson<TracedRegion>(json, readRegion);
}

}  // namespace hw::live
