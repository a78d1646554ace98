// SPDX-License-Identifier: MIT
// The part of SessionWriter about call stacks.
#include "core/session/guarded.h"
#include "core/session/session_writer.h"
#include "core/session/statements.h"

namespace hw::core {

SessionWriter::StackStatements& SessionWriter::stackStatements() {
    if (!stackStatements_) stackStatements_ = std::make_unique<StackStatements>(*database_);
    return *stackStatements_;
}

Status SessionWriter::insert(const SourceFrameRow& row) {
    return guarded(path_, "writing a source line", [&] {
        stackStatements()
            .frame.bind(1, row.id)
            .bind(2, row.file)
            .bind(3, row.function)
            .bind(4, row.line)
            .bind(5, std::int64_t{row.framework})
            .execute();
    });
}

Status SessionWriter::insert(const StackRow& row) {
    return guarded(path_, "writing a call stack", [&] {
        stackStatements().stack.bind(1, row.id).bind(2, row.parent).bind(3, row.frame).execute();
    });
}

}  // namespace hw::core
