// SPDX-License-Identifier: MIT
#include "core/session/exchanges.h"

#include <nlohmann/json.hpp>
#include <unordered_map>

#include "core/graph/unseen_ops.h"
#include "core/session/access.h"
#include "core/session/arguments.h"
#include "core/session/collectives.h"
#include "core/session/guarded.h"
#include "core/session/step_rows.h"

namespace hw::core {
namespace {

using nlohmann::json;

/// c10d's ops name the other rank and the tag last: (tensors, group, rank, tag).
Exchange messageOf(const std::string& name, const json& arguments) {
    Exchange message;
    message.kind =
        collectiveOperation(name) == "send" ? Exchange::Kind::Send : Exchange::Kind::Receive;
    std::vector<std::int64_t> numbers;
    for (const json& argument : arguments)
        if (argument.is_number_integer()) numbers.push_back(argument.get<std::int64_t>());
    if (numbers.empty()) return message;
    message.tag = numbers.back();
    if (numbers.size() > 1) message.peer = static_cast<int>(numbers[numbers.size() - 2]);
    return message;
}

Exchange exchangeOf(const std::string& name, const std::string& args) {
    const json arguments = positionalArguments(args);
    if (isMessage(name)) return messageOf(name, arguments);
    Exchange meeting;
    meeting.group = groupIn(arguments);
    return meeting;
}

class ExchangeReader {
public:
    ExchangeReader(Database& database, const StepRow& step)
        : rows_(database, step, OpDetail::Everything) {}

    std::vector<Exchange> read() {
        for (const OpRow& op : rows_.takeOps()) {
            if (!awaited_.empty()) use(op);
            if (!isCollective(op.name) || waitsForCollective(op.name)) continue;
            Exchange& exchange = exchanges_.emplace_back(exchangeOf(op.name, op.args));
            exchange.op = op.id, exchange.beginNs = op.beginNs;
            if (exchange.kind == Exchange::Kind::Send) continue;
            for (const OpRow::Input& input : op.inputs) await(input.tensor);
            for (const OpRow::Output& output : op.outputs) await(output.tensor);
        }
        return std::move(exchanges_);
    }

private:
    void await(std::int64_t tensor) {
        if (const TensorRow* row = rows_.tensor(tensor))
            awaited_.insert_or_assign(row->storage, exchanges_.size() - 1);
    }

    /// Storages that another exchange has meanwhile are that one's.
    void use(const OpRow& op) {
        for (const OpRow::Input& input : op.inputs) {
            const TensorRow* row = rows_.tensor(input.tensor);
            const auto at = row ? awaited_.find(row->storage) : awaited_.end();
            if (at == awaited_.end()) continue;
            Exchange& exchange = exchanges_[at->second];
            if (!exchange.use) exchange.use = op.id, exchange.useBeginNs = op.beginNs;
            awaited_.erase(at);
        }
    }

    StepRows rows_;
    std::vector<Exchange> exchanges_;
    std::unordered_map<std::int64_t, std::size_t> awaited_;  // by storage
};

}  // namespace

Result<std::vector<Exchange>> exchangesOf(const Session& session, const StepRow& step) {
    return guarded(session.path(), "reading collectives",
                   [&] { return ExchangeReader(databaseOf(session), step).read(); });
}

}  // namespace hw::core
