// SPDX-License-Identifier: MIT
// The ops of a program as they come, as far as storages can be made again by them.
//
// A storage is made again by its creator and then its writers, in their order. Each of them reads
// its inputs as they were: once a later op writes one of these, what was made from it can never be
// made again (the rule of core/memory/rebuild.h, for a program whose future is not known).
#pragma once

#include <c10/util/SmallVector.h>

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "call.h"
#include "source_lines.h"

namespace hw::live::runtime {

/// The version of an input that is left out when its op runs again.
inline constexpr std::int32_t kUnread = -2;

/// Instead of a storage that is not known any more.
inline constexpr std::uint32_t kNobody = 0xffffffff;

inline bool contains(const std::vector<std::uint32_t>& storages, std::uint32_t storage) {
    return std::find(storages.begin(), storages.end(), storage) != storages.end();
}

/// An op that can be run again. It writes one storage, or makes some and writes none.
struct TapeOp {
    Items<Input> inputs;
    Items<Output> outputs;
    Items<std::uint32_t> writes;
    Call call;
    std::int64_t cost = 0;    // ns, of its first run
    std::int64_t number = 0;  // in its step
    std::int32_t line = SourceLines::kNone;
    bool varies = false;  // see Varies
};

class Tape {
public:
    /// Most storages have one creator, and few readers.
    using Ops = c10::SmallVector<std::uint32_t, 2>;
    using Storages = c10::SmallVector<std::uint32_t, 8>;

    std::size_t storages() const { return origins_.size(); }
    std::uint32_t addStorage() {
        origins_.emplace_back();
        return static_cast<std::uint32_t>(origins_.size() - 1);
    }
    /// Its creator and writers; empty: nothing makes it.
    const Ops& chain(std::size_t storage) const { return origins_[storage].chain; }
    bool canMake(std::size_t storage) const { return !origins_[storage].chain.empty(); }
    /// Ops that read it as it is now, itself apart.
    const Ops& readers(std::size_t storage) const { return origins_[storage].readers; }

    /// The op that is about to run, to be kept by add(), or else forgotten.
    TapeOp& next();
    /// It has made and written these; `outputs`: all of its results.
    std::uint32_t add(const std::vector<Input>& inputs, const std::vector<Output>& outputs,
                      const std::vector<std::uint32_t>& writes);
    const TapeOp& operator[](std::size_t op) const { return ops_[op]; }
    std::size_t size() const { return used_; }

    /// What cannot be made again any more once the bytes of these change, in the order in which it
    /// came into being. What is not `alive(storage)` takes along what was made from it.
    template <typename Alive>
    Storages lostWith(Items<std::uint32_t> changed, const Alive& alive);
    /// Nothing makes it from here on.
    void forget(std::uint32_t storage) { origins_[storage].chain.clear(); }
    /// No op on the tape has read it as it is now.
    void forgetReaders(std::uint32_t storage) { origins_[storage].readers.clear(); }

    /// Keeps these storages only, with the ops that make those which `makes`; -1 in `to`: it goes.
    void compact(const std::vector<std::int64_t>& to, std::size_t storages,
                 const std::vector<bool>& makes);

private:
    struct Origin {
        Ops chain, readers;
        std::uint64_t found = 0;  // by which search
    };

    ItemStore items_;
    std::vector<Origin> origins_;
    std::deque<TapeOp> ops_;  // the first used_ are on the tape; the room of others is used again
    std::size_t used_ = 0;
    std::uint64_t searches_ = 0;
};

template <typename Alive>
Tape::Storages Tape::lostWith(Items<std::uint32_t> changed, const Alive& alive) {
    Storages lost, ahead;
    ++searches_;
    const auto lose = [&](std::uint32_t storage) {
        if (!canMake(storage) || std::exchange(origins_[storage].found, searches_) == searches_)
            return;
        lost.push_back(storage);
        if (!alive(storage)) ahead.push_back(storage);
    };
    const auto loseFrom = [&](std::uint32_t storage) {
        for (const std::uint32_t reader : readers(storage)) {
            for (const Output& output : ops_[reader].outputs)
                if (output.makes) lose(output.storage);
            for (const std::uint32_t written : ops_[reader].writes) lose(written);
        }
    };
    for (const std::uint32_t storage : changed) loseFrom(storage);
    while (!ahead.empty()) loseFrom(ahead.pop_back_val());
    std::sort(lost.begin(), lost.end());
    return lost;
}

}  // namespace hw::live::runtime
