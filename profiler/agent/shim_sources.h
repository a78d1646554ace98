// SPDX-License-Identifier: MIT
// The Python files of agent/shim, embedded at build time.
#pragma once

namespace hw::profiler::agent {

struct ShimSource {
    const char* name;
    const char* text;
};

/// The first one is boot.py; the list ends with a null name.
extern const ShimSource kShimSources[];

}  // namespace hw::profiler::agent
