// SPDX-License-Identifier: GPL-3.0-or-later
// The storages of a trace and the events between which they hold their bytes, whether all of them
// were loaded or only what is live at the peak.
#pragma once

#include "core/session/recorded_memory.h"

namespace hw::viewer {

template <class Visit>
void visitHeld(const core::RecordedMemory& memory, Visit visit) {
    for (const core::RecordedMemory::Held& held : memory.held) visit(held);
    if (!memory.held.empty()) return;
    for (const core::RecordedMemory::Lifetime& life : memory.lifetimes) {
        const core::Storage& storage = memory.graph.storages[life.storage];
        visit(core::RecordedMemory::Held{storage.sessionId, storage.bytes, storage.layer,
                                         memory.moments[static_cast<std::size_t>(life.first)].op,
                                         life.first, life.last + 1, storage.category});
    }
}

}  // namespace hw::viewer
