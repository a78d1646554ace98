// SPDX-License-Identifier: MIT
// Logs of simrd, the simulator of "Dynamic Tensor Rematerialization" (Kirisame et al., ICLR 2021).
#pragma once

#include "core/base/result.h"
#include "core/import/format.h"
#include "core/import/text_source.h"
#include "core/session/session_writer.h"

namespace hw::core {

/// Writes one step into an empty session. `CALL` and `MUTATE` after START are the ops; a constant,
/// a result that is no alias and a mutated argument are new storages (a logged mutation is a pure
/// op with a fresh output). A storage is released when the last name of a tensor on it goes.
/// Errors: BadInput with the line number.
Status importSimrd(TextSource& source, SessionWriter& session);

const ImportFormat& simrdFormat();

}  // namespace hw::core
