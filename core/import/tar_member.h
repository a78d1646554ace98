// SPDX-License-Identifier: MIT
// Where the one file of a tar archive lies: profilers pack a trace so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/base/result.h"

namespace hw::core {

/// Fills a buffer as far as the archive goes; how many bytes it gave.
using TarReader = std::function<std::size_t(char* to, std::size_t room)>;

struct TarMember {
    std::string name;
    std::int64_t offset = 0, size = 0;  // bytes, in the archive
};

/// Whether a file's first 512 bytes are the header of a tar archive.
bool looksLikeTar(const char* head, std::size_t size);

/// The only file of an archive that is read from its beginning to its end. Errors: BadInput when it
/// holds none or several, or is damaged.
Result<TarMember> onlyTarMember(const TarReader& read);

}  // namespace hw::core
