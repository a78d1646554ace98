// SPDX-License-Identifier: MIT
#include "core/import/simrd.h"

#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <unordered_map>

#include "core/base/json_integer.h"

namespace hw::core {
namespace {

using nlohmann::json;

std::int64_t wholeNumber(const json& item, const char* key) {
    const json& value = item.at(key);
    return value.is_string() ? integerOf<std::int64_t>(value.get<std::string>())
                             : integerOf<std::int64_t>(value);
}

class SimrdImporter {
public:
    SimrdImporter(TextSource& source, SessionWriter& session)
        : source_(source), session_(session) {}

    Status run() {
        try {
            readLines();
            if (!source_.error().empty()) throw std::invalid_argument(source_.error());
            if (nextOp_ == 0) throw std::invalid_argument("no op in it");
            return write();
        } catch (const std::exception& error) {
            return badInput(
                "simrd log, line " + std::to_string(source_.lineNumber()) + ": " + error.what(),
                "the log is damaged or cut short; export it again");
        }
    }

private:
    struct TensorState {
        std::int64_t storage;
        std::int64_t references;
        std::optional<std::int64_t> creator;
    };

    bool nextItem(json& item) {
        std::string line;
        do {
            if (!source_.next(line)) return false;
        } while (line.find_first_not_of(" \t") == std::string::npos);
        item = json::parse(line);
        return true;
    }
    json requireItem(const char* instruction, const std::string& name) {
        json item;
        if (!nextItem(item) || item.at("INSTRUCTION") != instruction || item.at("NAME") != name)
            throw std::invalid_argument(std::string("expected ") + instruction + " of '" + name +
                                        "'");
        return item;
    }

    void readLines() {
        json item;
        while (nextItem(item)) {
            const auto instruction = item.at("INSTRUCTION").get<std::string>();
            if (instruction == "ANNOTATE")
                annotate(item.at("ANNOTATION").get<std::string>());
            else if (instruction == "CONSTANT")
                constant(item.at("NAME").get<std::string>());
            else if (instruction == "COPY")
                copy(item.at("DST").get<std::string>(), item.at("SRC").get<std::string>());
            else if (instruction == "COPY_FROM") {
                const std::int64_t old = tensorOf(item.at("DST").get<std::string>());
                const std::int64_t from = tensorOf(item.at("SRC").get<std::string>());
                ++tensors_[from].references;
                setName(item.at("DST").get<std::string>(), from);
                release(old);
            } else if (instruction == "RELEASE") {
                const auto name = names_.find(item.at("NAME").get<std::string>());
                if (name != names_.end()) release(name->second);  // undefined names are ignored
            } else if (instruction == "CALL")
                call(item);
            else if (instruction == "MUTATE")
                mutate(item);
            else
                throw std::invalid_argument("unknown instruction '" + instruction + "'");
        }
    }

    // Replay begins after START: what came before is forgotten.
    void annotate(const std::string& text) {
        if (text != "START") return;
        names_.clear(), nameOrder_.clear(), tensors_.clear(), storages_.clear(), ops_.clear(),
            live_.clear();
        lastUse_.clear();
        seq_ = nextOp_ = clock_ = allBytes_ = 0;
    }

    void constant(const std::string& name) {
        const json memory = requireItem("MEMORY", name);
        const std::int64_t storage =
            newStorage(wholeNumber(memory, "MEMORY"), std::nullopt, seq_++);
        setName(name, newTensor(storage, std::nullopt));
    }

    void copy(const std::string& destination, const std::string& source) {
        const std::int64_t tensor = tensorOf(source);
        ++tensors_[tensor].references;
        setName(destination, tensor);
    }

    void call(const json& item) {
        OpRow op = newOp(item);
        const auto& results = item.at("RESULT");
        std::vector<std::pair<std::string, std::int64_t>> made;
        for (const json& result : results) {
            const auto name = result.get<std::string>();
            const std::int64_t bytes = wholeNumber(requireItem("MEMORY", name), "MEMORY");
            const std::int64_t alias = wholeNumber(requireItem("ALIAS", name), "ALIAS");
            if (alias < -1 || alias >= static_cast<std::int64_t>(op.inputs.size()))
                throw std::invalid_argument("alias of an argument that is not there");
            const std::int64_t storage = alias >= 0 ? tensors_.at(op.inputs[alias].tensor).storage
                                                    : newStorage(bytes, op.id, op.seq);
            made.emplace_back(name, newTensor(storage, op.id));
            op.outputs.push_back({made.back().second, alias < 0});
        }
        for (const auto& [name, tensor] : made) setName(name, tensor);
        ops_.push_back(std::move(op));
    }

    void mutate(const json& item) {
        OpRow op = newOp(item);
        std::vector<std::pair<std::string, std::int64_t>> made;
        for (const json& position : item.at("MUTATE")) {
            const auto at = integerOf<std::size_t>(position);
            const auto name = item.at("ARGS").at(at).get<std::string>();
            const Bytes bytes = storages_.at(tensors_.at(op.inputs.at(at).tensor).storage).bytes;
            made.emplace_back(name, newTensor(newStorage(bytes.count(), op.id, op.seq), op.id));
            op.outputs.push_back({made.back().second, true});
        }
        ops_.push_back(std::move(op));
        for (const auto& [name, tensor] : made) {
            const std::int64_t old = tensorOf(name);
            setName(name, tensor);
            release(old);
        }
    }

    OpRow newOp(const json& item) {
        OpRow op;
        op.id = nextOp_++;
        op.seq = seq_++;
        op.name = item.at("NAME").get<std::string>();
        op.beginNs = clock_;
        op.duration = Nanoseconds(wholeNumber(item, "TIME"));
        if (op.duration < Nanoseconds(0)) throw std::invalid_argument("a negative time");
        count(clock_, op.duration.count(), "times");
        for (const json& argument : item.at("ARGS")) {
            const std::int64_t tensor = tensorOf(argument.get<std::string>());
            op.inputs.push_back({tensor, 0});
            lastUse_[tensors_[tensor].storage] = op.id;
        }
        return op;
    }

    // Room is left for plans, which run ops again.
    static void count(std::int64_t& sum, std::int64_t more, const char* what) {
        constexpr std::int64_t kMost = std::int64_t{1} << 56;
        if (more > kMost - sum)
            throw std::invalid_argument(std::string(what) + " that add up to more than 2^56");
        sum += more;
    }

    std::int64_t newStorage(std::int64_t bytes, std::optional<std::int64_t> creator,
                            std::int64_t seq) {
        if (bytes < 0) throw std::invalid_argument("a negative size");
        count(allBytes_, bytes, "sizes");
        StorageRow row;
        row.id = static_cast<std::int64_t>(storages_.size());
        row.bytes = Bytes(bytes);
        row.device = "cuda";
        row.creator = creator;
        row.allocSeq = seq;
        storages_.push_back(row);
        live_.push_back(0);
        lastUse_.push_back(-1);
        return row.id;
    }
    std::int64_t newTensor(std::int64_t storage, std::optional<std::int64_t> creator) {
        tensors_.push_back({storage, 1, creator});
        ++live_[storage];
        return static_cast<std::int64_t>(tensors_.size()) - 1;
    }
    std::int64_t tensorOf(const std::string& name) const {
        const auto at = names_.find(name);
        if (at == names_.end()) throw std::invalid_argument("unknown tensor '" + name + "'");
        return at->second;
    }
    void setName(const std::string& name, std::int64_t tensor) {
        const auto [at, isNew] = names_.insert_or_assign(name, tensor);
        if (isNew) nameOrder_.push_back(name);
    }

    // live_ counts the tensors of a storage that still have a name.
    void release(std::int64_t tensor) {
        TensorState& state = tensors_[tensor];
        if (state.references == 0)
            throw std::invalid_argument("a tensor is released more often than held");
        if (--state.references == 0 && --live_[state.storage] == 0)
            storages_[state.storage].freeSeq = seq_++;
    }

    // The log's own backward marks are unreliable (max_pool2d_backward stands in forward passes):
    // memory tells. It is highest where forward turns into backward.
    void tellPhases() {
        std::map<std::int64_t, Bytes> change;  // by seq
        for (const StorageRow& row : storages_) {
            change[row.allocSeq] += row.bytes;
            if (row.freeSeq) change[*row.freeSeq] -= row.bytes;
        }
        Bytes live, peak;
        std::int64_t peakSeq = 0;
        for (const auto& [seq, bytes] : change)
            if (live += bytes; live > peak) peak = live, peakSeq = seq;
        std::int64_t firstBackward = nextOp_;
        for (OpRow& op : ops_) {
            const bool atPeak = op.seq == peakSeq && op.name.find("backward") == std::string::npos;
            op.phase = op.seq < peakSeq || atPeak ? Phase::Forward : Phase::Backward;
            if (op.phase == Phase::Backward) firstBackward = std::min(firstBackward, op.id);
        }
        for (StorageRow& row : storages_) {
            if (!row.creator)
                row.category = Category::Parameter;
            else if (*row.creator >= firstBackward)
                row.category = row.freeSeq ? Category::Temporary : Category::Gradient;
            else
                row.category =
                    lastUse_[row.id] >= firstBackward ? Category::Activation : Category::Temporary;
        }
    }

    Status write() {
        tellPhases();
        std::vector<std::int64_t> finals;
        std::vector<bool> listed(tensors_.size(), false);
        for (const std::string& name : nameOrder_) {
            const std::int64_t tensor = names_.at(name);
            if (tensors_[tensor].references > 0 && !listed[tensor])
                finals.push_back(tensor), listed[tensor] = true;
        }
        StepRow step;
        step.endSeq = seq_;
        step.endNs = clock_;

        if (Status s = session_.begin(); !s) return s;
        ProcessRow process;
        process.command = "simrd log";
        process.framework = "simrd";
        if (Status s = session_.insert(process); !s) return s;
        for (const OpRow& row : ops_)
            if (Status s = session_.insert(row); !s) return s;
        for (const StorageRow& row : storages_)
            if (Status s = session_.insert(row); !s) return s;
        for (std::size_t i = 0; i < tensors_.size(); ++i) {
            TensorRow row;
            row.id = static_cast<std::int64_t>(i), row.storage = tensors_[i].storage,
            row.creator = tensors_[i].creator;
            row.sizes = row.strides = "[]";
            if (Status s = session_.insert(row); !s) return s;
        }
        if (Status s = session_.insert(step, finals); !s) return s;
        for (const auto& [what, why] : std::map<std::string, std::string>{
                 {"layers", "simrd logs name no modules"},
                 {"phases", "simrd logs mark them unreliably; backward starts after the peak"},
                 {"workspace", "simrd logs hold no workspaces"},
                 {"categories",
                  "simrd logs do not tell parameters from inputs; constants count as parameters"}})
            if (Status s = session_.insert(GapRow{0, {}, {}, what, why}); !s) return s;
        return session_.commit();
    }

    TextSource& source_;
    SessionWriter& session_;
    std::unordered_map<std::string, std::int64_t> names_;
    std::vector<std::string> nameOrder_;  // in which names were first given
    std::vector<TensorState> tensors_;
    std::vector<StorageRow> storages_;
    std::vector<std::int64_t> live_;     // named tensors of each storage
    std::vector<std::int64_t> lastUse_;  // last op that reads each storage
    std::vector<OpRow> ops_;
    std::int64_t seq_ = 0, nextOp_ = 0, clock_ = 0, allBytes_ = 0;
};

}  // namespace

Status importSimrd(TextSource& source, SessionWriter& session) {
    return SimrdImporter(source, session).run();
}

const ImportFormat& simrdFormat() {
    static const ImportFormat format{.name = "simrd",
                                     .patterns = {"*.log", "*.log.gz"},
                                     .recognizes =
                                         [](const FileStart& file) {
                                             return file.first() == '{' &&
                                                    file.firstLine().find("\"INSTRUCTION\"") !=
                                                        std::string::npos;
                                         },
                                     .read = readText<importSimrd>};
    return format;
}

}  // namespace hw::core
