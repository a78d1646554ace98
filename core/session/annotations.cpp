// SPDX-License-Identifier: MIT
#include "core/session/annotations.h"

#include "core/session/access.h"
#include "core/session/guarded.h"

namespace hw::core {

Result<std::vector<Annotation>> loadAnnotations(const Session& session) {
    return guarded(session.path(), "reading annotations", [&] {
        std::vector<Annotation> annotations;
        Database& database = databaseOf(session);
        if (!database.hasTable("ranges")) return annotations;
        Statement from(database,
                       "SELECT name, coalesce(thread, 0), begin_ns, end_ns FROM ranges"
                       " WHERE kind = ? ORDER BY begin_ns, id");
        for (from.bind(1, std::string(kAnnotationKind)); from.step();)
            annotations.push_back(
                {from.text(0), from.integer(1), from.integer(2), from.integer(3)});
        return annotations;
    });
}

}  // namespace hw::core
