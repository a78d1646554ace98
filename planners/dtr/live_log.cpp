// SPDX-License-Identifier: MIT
#include "planners/dtr/live_log.h"

#include <map>
#include <sstream>
#include <string>

namespace hw::planners {
namespace {

using namespace hw::core;
using Kind = LiveEntry::Kind;

const std::map<std::string, Kind> kOfOneStorage{
    {"again", Kind::Again},  {"unwanted", Kind::Unwanted}, {"lost", Kind::Lost},
    {"freed", Kind::Freed},  {"keep", Kind::Keep},         {"pin", Kind::Pin},
    {"unpin", Kind::Unpin},  {"bring", Kind::Bring},       {"stuck", Kind::Stuck},
    {"shared", Kind::Shared}};

struct Malformed {};

class Reader {
public:
    explicit Reader(std::istream& file) : file_(file) {}

    /// Throws Malformed.
    LiveLog read() {
        std::string text;
        while (std::getline(file_, text) && !file_.eof()) {
            line_ = std::istringstream(text);
            std::string word;
            line_ >> word;
            take(word);
        }
        finishStretch();
        return std::move(log_);
    }
    const std::string& wrong() const { return wrong_; }

private:
    void take(const std::string& word) {
        if (word == "dtr") {
            log_.heuristic = static_cast<DtrHeuristic>(number());
        } else if (word == "stretch") {
            finishStretch();
            log_.stretches.emplace_back().clock = number();
            now().atAnyPrice = number() != 0;
            broken_ = false;
            current_ = kNone;
        } else if (!broken_) {
            takeEntry(word);
        }
    }

    void takeEntry(const std::string& word) {
        LiveStretch& stretch = now();
        if (const auto one = kOfOneStorage.find(word); one != kOfOneStorage.end())
            stretch.entries.push_back({one->second, storage(), kNone, {}, stretch.evicted.size()});
        else if (word == "evict")
            stretch.evicted.push_back(storage());
        else if (word == "room")
            stretch.entries.push_back({Kind::Room});
        else if (word == "made")
            stretch.entries.push_back({Kind::Made});
        else if (word == "done")
            stretch.entries.push_back({Kind::Done});
        else if (word == "broken" || (word == "end" && line_.eof()))
            broken_ = true;
        else if (word == "change")
            stretch.entries.push_back({Kind::Change, kNone, kNone, storages()});
        else if (word == "constant")
            takeConstant();
        else if (word == "kept")
            takeKept();
        else
            takeOp(word);
    }

    void takeOp(const std::string& word) {
        LiveStretch& stretch = now();
        if (word == "op") {
            std::string name;
            line_ >> name;
            current_ = add(name, number() != 0);
            for (const StorageIndex s : storages()) use(current_, s);
            stretch.entries.push_back({Kind::Op, kNone, current_});
        } else if (word == "tape") {
            const OpIndex op = add("", false);
            stretch.carried = op + 1;
            end(op);
        } else if (word == "end" && current_ != kNone) {
            stretch.graph.ops[current_].inputs.clear();
            end(current_);
            stretch.entries.push_back({Kind::Made});
        } else if (word == "failed" && current_ != kNone) {
            stretch.failed[current_] = true;
            write(current_, storages());
            stretch.entries.push_back({Kind::Made});
        } else if (word == "beside") {
            const OpIndex op = add("beside", false);
            write(op, storages());
            stretch.entries.push_back({Kind::Beside, kNone, op});
        } else if (word != "end") {
            throw Malformed();
        }
    }

    void takeConstant() {
        const StorageIndex s = storage();
        now().graph.storages[s].bytes = Bytes(number());
        now().entries.push_back({Kind::Constant, s});
    }

    void takeKept() {
        const StorageIndex s = storage();
        now().graph.storages[s].bytes = Bytes(number());
        LiveStretch::Kept kept;
        kept.storage = s;
        kept.compute = number();
        kept.lastAccess = number();
        for (bool* const flag :
             {&kept.evicted, &kept.pinned, &kept.deferred, &kept.needed, &kept.made})
            *flag = number() != 0;
        now().kept.push_back(kept);
    }

    void end(OpIndex op) {
        TrainingGraph& graph = now().graph;
        graph.ops[op].time = Nanoseconds(number());
        for (const StorageIndex s : storages()) use(op, s);
        for (std::int64_t results = number(); results > 0; results -= 3) {
            const StorageIndex s = storage();
            const bool makes = number() != 0;
            const Bytes bytes(number());
            if (makes) graph.storages[s].bytes = bytes;
            TensorIndex tensor = first_[s];
            if (!makes) {
                tensor = static_cast<TensorIndex>(graph.tensors.size());
                graph.tensors.push_back({s, kNone, kNone});
            }
            graph.ops[op].outputs.push_back({tensor, makes});
        }
        write(op, storages());
    }

    OpIndex add(const std::string& name, bool views) {
        LiveStretch& stretch = now();
        stretch.graph.ops.emplace_back().name = name;
        stretch.views.push_back(views);
        stretch.failed.push_back(false);
        return static_cast<OpIndex>(stretch.graph.ops.size() - 1);
    }
    void use(OpIndex op, StorageIndex s) {
        now().graph.ops[op].inputs.push_back({first_[s], written_[s]});
    }
    void write(OpIndex op, const std::vector<StorageIndex>& written) {
        for (const StorageIndex s : written)
            now().graph.ops[op].writes.push_back({s, written_[s]++});
    }

    std::int64_t number() {
        std::int64_t value = 0;
        if (!(line_ >> value)) throw Malformed();
        return value;
    }
    StorageIndex storage() {
        constexpr std::int64_t kMost = 1 << 28;
        const std::int64_t s = number();
        if (s < 0 || s >= kMost) throw Malformed();
        TrainingGraph& graph = now().graph;
        while (s >= static_cast<std::int64_t>(graph.storages.size())) {
            first_.push_back(static_cast<TensorIndex>(graph.tensors.size()));
            graph.tensors.push_back(
                {static_cast<StorageIndex>(graph.storages.size()), kNone, kNone});
            graph.storages.emplace_back();
            written_.push_back(0);
        }
        return static_cast<StorageIndex>(s);
    }
    std::vector<StorageIndex> storages() {
        std::vector<StorageIndex> list;
        for (std::int64_t left = number(); left > 0; --left) list.push_back(storage());
        return list;
    }
    LiveStretch& now() {
        if (log_.stretches.empty()) throw Malformed();
        return log_.stretches.back();
    }

    void finishStretch() {
        if (log_.stretches.empty()) return;
        TrainingGraph& graph = now().graph;
        std::vector<bool> made(graph.storages.size(), false);
        for (const Op& op : graph.ops)
            for (const OpOutput& output : op.outputs)
                if (output.makesStorage) made[graph.storageOf(output.tensor)] = true;
        for (std::size_t s = 0; s < made.size(); ++s)
            if (!made[s])
                graph.events.push_back({Event::Kind::Constant, static_cast<StorageIndex>(s)});
        for (std::size_t op = 0; op < graph.ops.size(); ++op)
            graph.events.push_back({Event::Kind::Compute, static_cast<OpIndex>(op)});
        if (wrong_.empty()) wrong_ = graph.finish();
        first_.clear();
        written_.clear();
    }

    std::istream& file_;
    std::istringstream line_;
    LiveLog log_;
    std::string wrong_;
    OpIndex current_ = kNone;
    bool broken_ = false;
    std::vector<TensorIndex> first_;     // tensor of each storage
    std::vector<std::int32_t> written_;  // how often, so far
};

}  // namespace

Result<LiveLog> readLiveLog(std::istream& file) {
    Reader reader(file);
    try {
        LiveLog log = reader.read();
        if (!reader.wrong().empty())
            return badInput("the log does not add up: " + reader.wrong(), "");
        return log;
    } catch (const Malformed&) {
        return badInput("this is no log of DTR in a program", "");
    }
}

}  // namespace hw::planners
