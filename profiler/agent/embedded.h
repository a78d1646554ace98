// SPDX-License-Identifier: MIT
// Files of agent/shim and agent/native, embedded at build time (embed.cmake).
#pragma once

namespace hw::profiler {

struct EmbeddedFile {
    const char* name;
    const char* text;
};

/// The Python files of the shim, boot.py first; the list ends with a null name.
extern const EmbeddedFile kShimFiles[];
/// The capture in C++ with the headers it includes; the list ends with a null name.
extern const EmbeddedFile kNativeFiles[];

}  // namespace hw::profiler
