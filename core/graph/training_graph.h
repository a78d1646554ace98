// SPDX-License-Identifier: MIT
// The one graph: captures, imported logs and generated graphs all become a TrainingGraph of one
// step.
//
// A *storage* is a block of bytes; a *tensor* looks at a storage. An op reads tensors, makes new
// storages, makes further views of existing ones, or writes a storage in place. Every write makes a
// new *version* of the storage (0 when it is made, or at the start of the step for a constant), and
// an op that reads a tensor reads it at one version.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/short_list.h"
#include "core/base/units.h"
#include "core/graph/indices.h"
#include "core/graph/link.h"

namespace hw::core {

enum class Phase : std::uint8_t { Unknown, Forward, Backward, Optimizer };
enum class Category : std::uint8_t {
    Parameter,
    Gradient,
    OptimizerState,
    Input,
    Activation,
    Temporary,
    Workspace,
    GatheredParameter,  // of all ranks, where each holds a part of it (FSDP)
    Unknown
};
inline constexpr int kCategoryCount = 9;

std::string_view phaseName(Phase phase);           // "forward", …, "unknown"
std::string_view categoryName(Category category);  // "parameter", "optimizer state", …
Phase phaseFromName(std::string_view name);
Category categoryFromName(std::string_view name);

struct Tensor {
    StorageIndex storage = kNone;
    OpIndex creator = kNone;  // first op that made it; kNone when it came with a constant
    std::int64_t sessionId = kNone;
};

/// A read of a tensor: the storage must hold exactly this version.
struct Use {
    TensorIndex tensor = kNone;
    std::int32_t version = 0;
};

/// One result of an op. `makesStorage`: it is a fresh storage. Otherwise it is a view of a storage
/// that exists already (or, for an in-place op, the written tensor itself) and takes no bytes.
struct OpOutput {
    TensorIndex tensor = kNone;
    bool makesStorage = false;
};

/// An in-place write: takes `storage` from `versionBefore` to `versionBefore` + 1.
struct Write {
    StorageIndex storage = kNone;
    std::int32_t versionBefore = 0;
};

struct Op {
    std::string name;  // "aten::convolution"
    ShortList<Use> inputs;
    ShortList<OpOutput> outputs;  // in result order
    ShortList<Write> writes;
    Nanoseconds time;  // of the cost set that the graph was loaded with
    Bytes workspace;  // highest live bytes while it runs - live bytes before - bytes of new outputs
    Phase phase = Phase::Unknown;
    LayerIndex layer = kNone;
    bool random = false;  // consumes a generator
    bool opaque = false;  // takes a tensor that has no plain memory (sparse)
    bool once = false;    // works on more than what ops leave in storages
    /// Makes views only: it may be computed for the first time later than captured (rule 1).
    /// finish() finds it.
    bool viewOnly = false;
    std::int64_t sessionId = kNone;

    /// Of that name, whatever its overload.
    bool is(std::string_view op) const;
};

struct Storage {
    Bytes bytes;
    OpIndex creator = kNone;  // kNone: a constant of the step, it cannot be rematerialized
    Category category = Category::Unknown;
    LayerIndex layer = kNone;        // of its creator; for a constant, of its owner
    ShortList<TensorIndex> tensors;  // all tensors on it; [0] came with the storage
    ShortList<OpIndex> writers;      // in-place ops in captured order; version k comes from [k-1]
    ShortList<OpIndex> readers;      // distinct ops with an input on it, in captured order
    bool aliveAtEnd = false;         // held when the step ends
    bool writtenUnseen = false;      // the recording has seen that code which calls no op wrote it
    bool filledUnseen = false;       // likewise, before an op first read it, and never after that
    bool quantized = false;          // scale and zero point are not among its bytes
    bool unseen = false;             // ops do not show all of what is in it, or who reads it
    std::int64_t sessionId = kNone;

    bool isConstant() const { return creator == kNone; }
    /// A parameter, whole or as far as this rank holds it.
    bool isParameter() const {
        return category == Category::Parameter || category == Category::GatheredParameter;
    }
};

struct Layer {
    std::string path;  // "layer1.0.conv2", "(root)", "(loss)", "(optimizer)"
    std::string type;  // "Conv2d"; empty when unknown
    LayerIndex parent = kNone;
};

/// What happened, in captured order. A constant appears where it came into being; Release is the
/// last external release of a storage.
struct Event {
    enum class Kind : std::uint8_t { Constant, Compute, Release } kind;
    std::int32_t index;  // op for Compute, storage otherwise
};

/// Which figures op times and workspaces come from (rule 10).
enum class CostSet : std::uint8_t { Captured, Measured };
std::string_view costSetName(CostSet set);

class TrainingGraph {
public:
    std::vector<Op> ops;
    std::vector<Storage> storages;
    std::vector<Tensor> tensors;
    std::vector<Layer> layers;
    std::vector<Event> events;
    /// Tensors that must be resident and defined when the step ends, in the order of their names.
    std::vector<TensorIndex> finalTensors;
    CostSet costs = CostSet::Captured;
    Link link;  // by which offloaded bytes come and go
    std::string
        framework;  // of the recorded process: "pytorch", or "simrd" for the simulator's logs
    bool recorded = false;  // from a running program, by Highwater: nothing imported or generated
    std::int64_t sessionStep = kNone;

    /// Fills the derived fields (storage tensors, readers, writers, layer, creator of tensors, what
    /// is unseen and what runs once) from ops, tensors and events. Returns what is inconsistent,
    /// empty when nothing is.
    std::string finish();

    Nanoseconds totalTime() const;  // the baseline's time
    Bytes constantBytes() const;
    /// The most bytes of constants that are alive at the same time in the recorded step.
    Bytes constantPeak() const;
    /// Largest inputs + outputs + workspace of one op, constants left out, each storage once.
    Bytes bottleneckBytes() const;
    /// A budget below this is impossible for any schedule: the maximum over the storage-making ops
    /// of non-constant inputs + outputs + workspace + constants still needed, and of the final
    /// outputs, each storage once.
    Bytes floorBytes() const;
    /// "sha256:…" over op names, edges, sizes, aliases and mutations; not times or workspaces.
    std::string fingerprint() const;

    StorageIndex storageOf(TensorIndex tensor) const { return tensors[tensor].storage; }

private:
    std::string clearFound();
    std::string linkOp(OpIndex op, std::vector<bool>& readBefore);
    void linkTensors();
    void findUnseen();
};

}  // namespace hw::core
