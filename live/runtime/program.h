// SPDX-License-Identifier: MIT
// A plan as it arrives in the training process (live/wire/live_program.h), with what follows
// from it: which ops make the versions of a storage, and which version each op reads.
#pragma once

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/ScalarType.h>

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "live_program.h"

namespace hw::live::runtime {

namespace wire = profiler::wire;

/// How a storage is encoded.
struct Encoding {
    wire::LiveCodec codec = wire::LiveCodec::Mask;
    c10::ScalarType type = c10::ScalarType::Undefined;  // of the storage's elements
    std::int64_t bytes = 0;                             // of the encoded form

    /// Decoding gives the same bytes back.
    bool exact() const { return codec != wire::LiveCodec::Sign; }
};

template <typename Item>
using Items = c10::ArrayRef<Item>;

struct Action {
    wire::LiveAction kind = wire::LiveAction::Drop;
    std::uint32_t target = 0;      // op for Recompute, storage otherwise
    Items<std::uint32_t> outputs;  // of Recompute
    Encoding encoding;             // of Encode
};

struct Input {
    std::uint32_t storage = 0;
    std::uint64_t form = 0;
    std::int32_t version = 0;  // of the storage when it is read
    bool followed = false;     // the storage is
};
struct Output {
    std::uint32_t storage = 0;
    bool makes = false;
    std::uint64_t form = 0;
    std::int64_t bytes = 0;  // of the storage
    bool followed = false;   // the storage is
};

/// One of the framework's ops, as the plan names it.
struct OpName {
    std::string name, overload;
    const c10::FunctionSchema* schema = nullptr;  // null: the framework has no such op yet
    bool writesWhole = false;                     // see runtime::writesWhole()
};

/// What such an op makes may have other bytes when it runs again, on the CPU or on a GPU; see
/// core::isNondeterministic.
struct Varies {
    bool onCpu = false, onGpu = false;

    void add(const Varies& other) {
        onCpu = onCpu || other.onCpu;
        onGpu = onGpu || other.onGpu;
    }
    bool on(c10::DeviceType device) const {
        const bool varies =
            device == c10::DeviceType::CPU ? onCpu && at::get_num_threads() > 1 : onGpu;
        return varies && !at::globalContext().deterministicAlgorithms();
    }
};

struct ProgramOp {
    const c10::FunctionSchema* schema = nullptr;  // null: the framework has no such op yet
    std::uint32_t name = 0;                       // of the program's
    bool keep = false, random = false;
    bool onlyViews = false;         // looks at no bytes
    bool comparesWithZero = false;  // may read signs for elements
    bool onlyFills = false;         // see unseen_writes.h
    bool undefined = false;         // see leavesBytesUndefined
    bool writesWhole = false;       // see runtime::writesWhole()
    bool hasStatistics = false;     // see runtime::hasStatistics()
    Varies varies;                  // or it reads what such an op recomputes
    bool agrees = false;            // with the framework's schema on what it writes
    bool adopts = false;            // its last input is known by its result only
    bool receives = false;          // see receivesBatch()
    bool followed = false;          // the plan has something to do here or with its storages
    Items<Input> inputs;
    Items<Output> outputs;
    Items<std::uint32_t> writes;
    Items<std::uint32_t> gone;     // what the program has let go of since the op before
    std::size_t followedGone = 0;  // the first so many of these are followed
    Items<Action> before, after;

    /// Inputs that are among its arguments.
    std::size_t given() const { return inputs.size() - (adopts ? 1 : 0); }
};

struct ProgramStorage {
    std::int64_t bytes = 0;
    bool constant = false;
    bool lasting = false;              // the step leaves it behind
    bool followed = false;             // the plan moves its bytes, or may make others from them
    bool moved = false;                // the plan does something with its bytes
    bool dropped = false;              // or an encoded form takes their place
    bool gathered = false;             // its bytes go by no op, and nothing is made from them again
    std::vector<std::uint32_t> chain;  // its creator (none of a constant), then its writers
    bool pinned = false;               // somebody read it past the dispatcher: it stays
    bool early = false;                // it leaves before an op of the step reads it
};

/// Where the items of ops lie, in the order of the ops: a step reads them one after the other.
class ItemStore {
public:
    template <typename Item>
    Items<Item> keep(const std::vector<Item>& items) {
        static_assert(std::is_trivially_destructible<Item>::value && alignof(Item) <= kAlignment);
        char* const place = take(items.size() * sizeof(Item));
        std::uninitialized_copy(items.begin(), items.end(), reinterpret_cast<Item*>(place));
        return {reinterpret_cast<const Item*>(place), items.size()};
    }

private:
    static constexpr std::size_t kAlignment = 8;
    char* take(std::size_t bytes);

    std::vector<std::unique_ptr<char[]>> chunks_;
    std::size_t left_ = 0;  // bytes of the last one
    char* next_ = nullptr;
};

struct Program {
    std::vector<ProgramStorage> storages;
    std::vector<std::uint32_t> constants;  // of the storages
    std::vector<std::uint32_t> early;      // of these
    /// What those were in the last step that kept to the plan.
    std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> known;
    std::vector<ProgramOp> ops;
    std::vector<OpName> names;
    ItemStore items;
    /// Ops before the forward pass, where a step has shown it.
    std::size_t forwardAt = std::numeric_limits<std::size_t>::max();
    bool complete = false;  // each op is known to the framework
    bool onGpu = false;     // one of its ops has run there
    /// From this op on nothing is dropped or made again any more, nor by another plan that may go
    /// on there.
    std::size_t settledAt = 0;
    /// The same of this plan alone.
    std::size_t doneAt = 0;
    std::int64_t steps = 0;  // that have begun with it

    std::string fullName(const ProgramOp& op) const;
};

/// Whether an op only makes a tensor of bytes that came from elsewhere, as a loader's batches do:
/// none, one or several come between two steps. `empty`: it would make no bytes.
bool receivesBatch(const std::string& name, const std::string& overload, bool empty);

/// Looks up the ops that are not known yet: extensions register theirs when they are imported.
/// Whether all are known now.
bool findSchemas(Program& program);

/// None where the bytes are no program of this version, or one with other actions than `can`; `why`
/// says it.
std::optional<Program> readProgram(const std::string& bytes, wire::LiveActions can,
                                   std::string& why);

}  // namespace hw::live::runtime
