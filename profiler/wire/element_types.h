// SPDX-License-Identifier: MIT
// The framework's types of elements, by their numbers (c10::ScalarType), which are the same in
// every release.
#pragma once

namespace hw::profiler::wire {

// clang-format off
inline constexpr const char* kElementTypes[] = {
    "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64",
    "complex32", "complex64", "complex128", "bool", "qint8", "quint8", "qint32", "bfloat16",
    "quint4x2", "quint2x4", "bits1x8", "bits2x4", "bits4x2", "bits8", "bits16",
    "float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz",
    "uint16", "uint32", "uint64",
    "uint1", "uint2", "uint3", "uint4", "uint5", "uint6", "uint7",
    "int1", "int2", "int3", "int4", "int5", "int6", "int7",
    "float8_e8m0fnu", "float4_e2m1fn_x2"};
// clang-format on

}  // namespace hw::profiler::wire
