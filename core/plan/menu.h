// SPDX-License-Identifier: MIT
// A menu: other implementations of ops than the captured ones.
//
// Its file is JSON:
//
//     {"format": "highwater-menu", "version": 1, "graph": "sha256:…",
//      "implementations": [
//        {"op": 3, "name": "fft", "kind": "algorithm", "time_ns": 900, "workspace_bytes": 65536},
//        {"op": 7, "name": "by-result", "kind": "output-activated",
//         "backward": 40, "instead_of": 12, "output": 0},
//        {"op": 7, "name": "mask", "kind": "intermediate-activated",
//         "backward": 40, "instead_of": 12, "bytes": 4096},
//        {"op": 7, "name": "in-place", "kind": "in-place", "takes": 12, "output": 0}]}
//
// `graph` is the fingerprint of the graph it is made for and may be left out. Ops and storages
// count as in a plan. `time_ns` and `workspace_bytes` are the op's with this implementation; an
// `algorithm` must state both, the other kinds keep what they leave out as it was captured, as well
// as `backward_time_ns` and `backward_workspace_bytes`, the figures of the op `backward`. `output`
// is 0 where it is not given; an `in-place` one with `backward` makes that op read the output too,
// instead of the storage `instead_of`, by default the one that is taken.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/graph/training_graph.h"

namespace hw::core {

/// What differs from the captured implementation. The last three are those of Shah et al., "Memory
/// Optimization for Deep Networks" (ICLR 2021), section 4.3, and change what is read or kept.
enum class ImplementationKind : std::uint8_t {
    Algorithm,              // time and workspace only
    OutputActivated,        // the gradient op reads an output in place of a storage
    IntermediateActivated,  // the op makes one more, small storage, which the gradient op reads
    InPlace                 // an output takes the storage of an input
};
std::string_view implementationKindName(ImplementationKind kind);  // "algorithm", …

/// One entry of a menu.
struct Implementation {
    OpIndex op = kNone;
    std::string name;
    ImplementationKind kind = ImplementationKind::Algorithm;
    std::optional<Nanoseconds> time;  // none: as captured
    std::optional<Bytes> workspace;
    OpIndex backward = kNone;  // the gradient op that changes with it
    std::optional<Nanoseconds> backwardTime;
    std::optional<Bytes> backwardWorkspace;
    StorageIndex insteadOf = kNone;  // what `backward` reads no more
    std::int32_t output = 0;         // of `op`: read instead, or the one that takes the storage
    StorageIndex takes = kNone;      // InPlace: the input's storage
    Bytes bytes;                     // IntermediateActivated: of the storage that `op` makes more
};

struct Menu {
    std::vector<Implementation> implementations;

    bool empty() const { return implementations.empty(); }
    /// Null when there is none of that name.
    const Implementation* find(OpIndex op, std::string_view name) const;
};

/// Op to name; every other op runs as captured.
using ImplementationChoice = std::map<OpIndex, std::string>;

/// The entries that `choice` names.
Menu onlyChosen(const Menu& menu, const ImplementationChoice& choice);

/// Parses a menu for `graph`. Errors: BadInput that names the entry and what is wrong with it. An
/// entry that is right in itself may still be impossible because of other ops, when one of them
/// reads what it overwrites: applyImplementations() tells.
Result<Menu> parseMenu(const std::string& text, const TrainingGraph& graph);
/// The same of a menu whose graph is not at hand, only its fingerprint: whether the ops and
/// storages are that graph's is left to checkMenu().
Result<Menu> parseMenu(const std::string& text, const std::string& fingerprint);
/// BadInput that names the first entry which `graph` does not allow.
Status checkMenu(const Menu& menu, const TrainingGraph& graph);
Result<Menu> readMenuFile(const std::string& path, const TrainingGraph& graph);
/// The text of a menu, on one line.
std::string writeMenu(const Menu& menu);

}  // namespace hw::core
