// SPDX-License-Identifier: MIT
#include "core/session/exchanges.h"

#include <nlohmann/json.hpp>
#include <unordered_map>

#include "core/graph/unseen_ops.h"
#include "core/session/access.h"
#include "core/session/arguments.h"
#include "core/session/collectives.h"
#include "core/session/guarded.h"

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
    explicit ExchangeReader(Database& database)
        : ops_(database,
               "SELECT id, name, begin_ns, CASE WHEN name GLOB '*c10d*' THEN coalesce(args, '')"
               " ELSE '' END FROM ops WHERE seq >= ? AND seq < ? ORDER BY seq"),
          inputs_(database,
                  "SELECT t.storage FROM op_inputs i JOIN tensors t ON t.id = i.tensor"
                  " WHERE i.op = ?"),
          outputs_(database,
                   "SELECT t.storage FROM op_outputs i JOIN tensors t ON t.id = i.tensor"
                   " WHERE i.op = ?") {}

    std::vector<Exchange> read(const StepRow& step) {
        for (ops_.bind(1, step.firstSeq).bind(2, step.endSeq); ops_.step();) {
            const std::int64_t op = ops_.integer(0);
            const std::string name = ops_.text(1);
            if (!awaited_.empty()) use(op, ops_.integer(2));
            if (!isCollective(name) || waitsForCollective(name)) continue;
            Exchange& exchange = exchanges_.emplace_back(exchangeOf(name, ops_.text(3)));
            exchange.op = op, exchange.beginNs = ops_.integer(2);
            if (exchange.kind != Exchange::Kind::Send) await(op);
        }
        return std::move(exchanges_);
    }

private:
    void await(std::int64_t op) {
        for (Statement* storages : {&inputs_, &outputs_}) {
            for (storages->bind(1, op); storages->step();)
                awaited_.insert_or_assign(storages->integer(0), exchanges_.size() - 1);
            storages->reset();
        }
    }

    /// Storages that another exchange has meanwhile are that one's.
    void use(std::int64_t op, std::int64_t beginNs) {
        for (inputs_.bind(1, op); inputs_.step();) {
            const auto at = awaited_.find(inputs_.integer(0));
            if (at == awaited_.end()) continue;
            Exchange& exchange = exchanges_[at->second];
            if (!exchange.use) exchange.use = op, exchange.useBeginNs = beginNs;
            awaited_.erase(at);
        }
        inputs_.reset();
    }

    Statement ops_, inputs_, outputs_;
    std::vector<Exchange> exchanges_;
    std::unordered_map<std::int64_t, std::size_t> awaited_;  // by storage
};

}  // namespace

Result<std::vector<Exchange>> exchangesOf(const Session& session, const StepRow& step) {
    return guarded(session.path(), "reading collectives",
                   [&] { return ExchangeReader(databaseOf(session)).read(step); });
}

}  // namespace hw::core
