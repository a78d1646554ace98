// SPDX-License-Identifier: MIT
#include "core/session/load_menu.h"

#include <unordered_map>

#include "core/session/database.h"

namespace hw::core {

Result<Menu> loadMenu(Session& session, const TrainingGraph& graph) {
    std::unordered_map<std::int64_t, OpIndex> indices;
    for (OpIndex i = 0; i < static_cast<OpIndex>(graph.ops.size()); ++i)
        indices[graph.ops[i].sessionId] = i;
    Menu menu;
    try {
        Statement from(session.database(),
                       "SELECT op, name, duration_ns, workspace_bytes FROM implementations"
                       " ORDER BY op, name");
        while (from.step()) {
            const auto op = indices.find(from.integer(0));
            if (op == indices.end()) continue;  // of another step
            Implementation one;
            one.op = op->second;
            one.name = from.text(1);
            one.time = Nanoseconds(from.integer(2));
            one.workspace = Bytes(from.integer(3));
            if (*one.time < Nanoseconds(0) || *one.workspace < Bytes(0))
                return badInput("session '" + session.path() + "': implementation '" + one.name +
                                    "' of op " + std::to_string(one.op) + " has negative figures",
                                "the file may be damaged; record again");
            menu.implementations.push_back(std::move(one));
        }
    } catch (const DatabaseError& error) {
        return badInput("session '" + session.path() + "': " + error.message,
                        "the file may be damaged; record or import it again");
    }
    return menu;
}

}  // namespace hw::core
