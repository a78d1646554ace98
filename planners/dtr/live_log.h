// SPDX-License-Identifier: MIT
// What came to DTR in a program that trained within a budget, as its runtime has logged it
// (live/runtime/decision_log.h): for a replay by the simulation's runtime (live_replay.h).
//
// One line each, numbers after the word; lists begin with their length. Storages are numbered anew
// in every stretch, between two moments at which the runtime begins anew.
//   dtr HEURISTIC                      once, first
//   stretch CLOCK PRICE                ns; PRICE: 1 where nothing is spared any more, else 0
//   tape COST READS RESULTS WRITES     an op from before by which something can be made again
//   kept STORAGE BYTES COMPUTE ACCESS EVICTED PINNED DEFERRED NEEDED MADE
//                                      known from before; NEEDED: something that is not there is
//                                      made from it; MADE: in this step; 1 or 0 each
//   op NAME VIEWS INPUTS               an op comes by; VIEWS: it makes views and looks at no bytes
//   end COST READS RESULTS WRITES      it has run; RESULTS: storage, whether new, bytes; of each
//   failed WRITES                      or has raised an exception
//   done                               and is let go of
//   again STORAGE, made, done          the same of one that runs again for a storage
//   constant STORAGE BYTES             is read, and no op has made it
//   unwanted STORAGE                   the program does not refer to it any more
//   lost STORAGE                       nothing refers to it: its bytes have gone
//   freed STORAGE                      the runtime has heard of that
//   keep STORAGE                       nothing can make it again
//   pin STORAGE, unpin STORAGE         it stays, for reasons of the framework's; or no longer
//   bring STORAGE                      somebody looks at it past the dispatcher
//   change STORAGES                    are about to be written, or have been unseen
//   beside STORAGES                    have been written on another thread
//   room BYTES                         an allocation would pass the budget
//   stuck STORAGE                      what was chosen has bytes that are not the framework's
//   shared STORAGE                     what was chosen waits until nothing else can go: of what it
//                                      would be made from, autograd counts who refers to it
//   evict STORAGE                      what the runtime has evicted: to compare with
//   broken                             the op under way was given up before it ran
//   end                                alone: the log ends
#pragma once

#include <istream>
#include <vector>

#include "core/base/result.h"
#include "core/graph/training_graph.h"
#include "planners/dtr/dtr_heuristic.h"

namespace hw::planners {

struct LiveEntry {
    enum class Kind {
        Op,
        Made,  // end, failed and made
        Done,
        Again,
        Constant,
        Unwanted,
        Lost,
        Freed,
        Keep,
        Pin,
        Unpin,
        Bring,
        Change,
        Beside,
        Room,
        Stuck,
        Shared
    } kind;
    core::StorageIndex storage = core::kNone;
    core::OpIndex op = core::kNone;                 // of Op and Beside
    std::vector<core::StorageIndex> storages = {};  // of Change
    std::size_t evictions = 0;                      // before Freed
};

struct LiveStretch {
    /// One tensor a storage, with its index, and one more for each further result on it. Ops from
    /// before come first.
    core::TrainingGraph graph;
    std::vector<bool> views, failed;  // by op
    std::int64_t clock = 1;
    bool atAnyPrice = false;
    core::OpIndex carried = 0;  // so many ops are from before
    struct Kept {
        core::StorageIndex storage = core::kNone;
        std::int64_t compute = 0, lastAccess = 0;
        bool evicted = false, pinned = false, deferred = false, needed = false, made = false;
    };
    std::vector<Kept> kept;
    std::vector<LiveEntry> entries;
    std::vector<core::StorageIndex> evicted;  // by the runtime in the program, in order
};

struct LiveLog {
    DtrHeuristic heuristic = DtrHeuristic::EqClass;
    std::vector<LiveStretch> stretches;
};

/// A last line that is not whole is left out: the program may have been killed. Errors: BadInput.
core::Result<LiveLog> readLiveLog(std::istream& file);

}  // namespace hw::planners
