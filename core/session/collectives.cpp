// SPDX-License-Identifier: MIT
#include "core/session/collectives.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/graph/unseen_ops.h"
#include "core/session/access.h"
#include "core/session/arguments.h"
#include "core/session/guarded.h"
#include "core/session/step_rows.h"

namespace hw::core {
namespace {

using nlohmann::json;

// The first that is in an op's name says what it does.
constexpr std::pair<const char*, const char*> kOperations[] = {
    {"wait_tensor", "wait"},     {"reduce_scatter", "reduce-scatter"},
    {"allreduce", "all-reduce"}, {"all_reduce", "all-reduce"},
    {"allgather", "all-gather"}, {"all_gather", "all-gather"},
    {"alltoall", "all-to-all"},  {"all_to_all", "all-to-all"},
    {"broadcast", "broadcast"},  {"barrier", "barrier"},
    {"reduce", "reduce"},        {"scatter", "scatter"},
    {"gather", "gather"},        {"send", "send"},
    {"recv", "receive"}};

/// Bytes of an element: "float32", "bfloat16", "float8_e4m3fn", "bool".
std::int64_t elementBytes(const std::string& dtype) {
    const auto digit = std::find_if(dtype.begin(), dtype.end(),
                                    [](unsigned char c) { return std::isdigit(c) != 0; });
    if (digit == dtype.end()) return 1;
    return std::max(1, std::atoi(dtype.c_str() + (digit - dtype.begin())) / 8);
}

class CollectiveReader {
public:
    explicit CollectiveReader(StepRows& rows) : rows_(rows) {}

    std::int64_t largestBuffer(const OpRow& op, const json& arguments) {
        std::int64_t largest = 0, results = 0;
        for (const json& argument : arguments) largest = std::max(largest, bytesIn(argument));
        for (const OpRow::Output& output : op.outputs) results += bytesOf(output.tensor);
        return std::max(largest, results);
    }

private:
    std::int64_t bytesIn(const json& argument) {
        std::int64_t bytes = 0;
        if (argument.is_array())
            for (const json& item : argument) bytes += bytesIn(item);
        else if (argument.is_object() && argument.contains("t") && argument["t"].is_number())
            bytes = bytesOf(argument["t"].get<std::int64_t>());
        return bytes;
    }

    std::int64_t bytesOf(std::int64_t tensor) {
        const TensorRow* row = rows_.tensor(tensor);
        if (row == nullptr) return 0;
        std::int64_t bytes = elementBytes(row->dtype);
        const json sizes = json::parse(row->sizes, nullptr, false);
        for (const json& size : sizes) bytes *= size.is_number() ? size.get<std::int64_t>() : 0;
        return bytes;
    }

    StepRows& rows_;
};

}  // namespace

std::string collectiveOperation(const std::string& op) {
    const std::string name = op.substr(op.rfind(':') + 1);
    for (const auto& [part, operation] : kOperations)
        if (name.find(part) != std::string::npos) return operation;
    return name;
}

bool isMessage(const std::string& op) {
    const std::string operation = collectiveOperation(op);
    return operation == "send" || operation == "receive";
}

std::string groupIn(const json& positional) {
    const bool named =
        positional.is_array() && !positional.empty() && positional.back().is_string();
    return named ? positional.back().get<std::string>() : "";
}

Result<std::vector<CollectiveUse>> collectivesOf(const Session& session, const StepRow& step) {
    return guarded(session.path(), "reading collectives", [&] {
        StepRows rows(databaseOf(session), step, OpDetail::Everything);
        CollectiveReader reader(rows);
        std::vector<CollectiveUse> uses;
        for (const OpRow& op : rows.takeOps()) {
            if (!isCollective(op.name)) continue;
            const std::string operation = collectiveOperation(op.name);
            const json arguments = positionalArguments(op.args);
            const bool waits = waitsForCollective(op.name);
            const std::string group = waits ? "" : groupIn(arguments);
            auto at = std::find_if(uses.begin(), uses.end(), [&](const CollectiveUse& use) {
                return use.operation == operation && use.group == group;
            });
            if (at == uses.end()) at = uses.insert(at, {operation, group, 0, Bytes(0)});
            ++at->count;
            if (!waits) at->bytes += Bytes(reader.largestBuffer(op, arguments));
        }
        return uses;
    });
}

}  // namespace hw::core
