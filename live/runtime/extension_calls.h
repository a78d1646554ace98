// SPDX-License-Identifier: MIT
// Calls of functions of extensions: what ops make meanwhile, the extension may fill by no op.
#pragma once

namespace hw::live::runtime {

/// Functions of extensions that this thread is in.
inline thread_local int tExtensionCalls = 0;

inline bool inExtension() {
    return tExtensionCalls > 0;
}

}  // namespace hw::live::runtime
