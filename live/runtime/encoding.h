// SPDX-License-Identifier: MIT
// The encodings of plans (core/plan/codec.h) on the bytes of a storage in the processor's memory.
#pragma once

#include <cstddef>

#include "program.h"

namespace hw::live::runtime {

/// Of the encoded form of `plain` bytes; the largest number where the codec takes no such elements.
std::int64_t encodedBytes(const Encoding& how, std::size_t plain);
/// False where the elements are not what the codec keeps. `form` has as many bytes as `how` says,
/// encodedBytes() at least.
bool encodeBytes(const Encoding& how, const void* plain, std::size_t bytes, void* form);
/// From what encodeBytes() has made of as many bytes.
void decodeBytes(const Encoding& how, const void* form, std::size_t bytes, void* plain);

}  // namespace hw::live::runtime
