// SPDX-License-Identifier: MIT
// Addresses of a mapped library's functions, and of code in it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hw::profiler {

/// Reads the dynamic symbols of a 64-bit ELF file. `start`: where its first byte is mapped in the
/// process that the addresses are for. One address a name; 0 where the file does not define it.
/// Nothing when the file is no such ELF file, or damaged.
std::optional<std::vector<std::uint64_t>> functionAddresses(const std::string& file,
                                                            std::uint64_t start,
                                                            std::span<const char* const> names);

/// Where the file's executable segments first have these bytes, in the process as above. Nothing
/// where they do not, or as above.
std::optional<std::uint64_t> codeAddress(const std::string& file, std::uint64_t start,
                                         std::string_view code);

}  // namespace hw::profiler
