// SPDX-License-Identifier: MIT
// Everything that a recorded step needs to run again, out of the session.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/graph/training_graph.h"
#include "core/plan/implementations.h"
#include "core/session/session.h"
#include "executor/replay/checksum.h"
#include "executor/replay/span.h"

namespace hw::executor {

/// Where every tensor of a run lives, whichever device it was recorded on.
enum class Device { Cpu, Cuda };

/// Shape and place of a tensor on its storage.
struct TensorShape {
    std::string dtype;                         // "float32"; empty when the tensor was not recorded
    std::vector<std::int64_t> sizes, strides;  // elements
    std::int64_t offset = 0;                   // elements
};

struct Environment {
    int threads = 0;  // 0: not recorded
    std::string defaultDtype;
    std::optional<bool> mkldnn, deterministic;
};

struct Step {
    std::int64_t id = 0;
    core::TrainingGraph graph;                           // indices are those of this graph
    std::vector<core::OpRow> ops;                        // as graph.ops
    std::vector<TensorShape> shapes;                     // as graph.tensors
    std::map<std::int64_t, core::TensorIndex> tensorOf;  // session id -> tensor
    std::map<core::StorageIndex, std::vector<std::byte>> contents;  // stored bytes of constants
    std::vector<core::Generator> generators;
    Environment environment;
    std::string frameworkVersion;
    std::string recordedOn;                    // "cpu", "cuda:0"
    std::vector<std::string> libraries;        // of extensions, to load first
    std::vector<core::Implementation> chosen;  // that run in place of the captured ones
    /// Tensors among its arguments that a gradient op does not read under what is chosen.
    std::map<core::OpIndex, std::set<core::TensorIndex>> unread;
};

/// Loads step `id` with the given costs. Errors: BadInput when the session has no such step, or was
/// not recorded with arguments (imported logs), or holds tensors of
/// devices that a run on `device` cannot stand in for: a GPU's on the CPU, or several GPUs'.
core::Result<Step> loadStep(const core::Session& session, std::int64_t id,
                            std::optional<core::CostSet> costs, Device device = Device::Cpu);

/// The first bytes of a constant: the stored ones; without, zeros for integers and, for floating
/// types, small positive values that depend on the storage alone (weights of two dimensions and
/// more are centred and scaled by their fan-in, so that activations keep their size).
void fillConstant(const Step& step, core::StorageIndex storage, Span<std::byte> bytes);

/// "layer1.0.conv2", or what the session says instead; empty when nothing is known.
std::string layerOf(const core::TrainingGraph& graph, core::OpIndex op);

ElementKind elementKind(const std::string& dtype);

}  // namespace hw::executor
