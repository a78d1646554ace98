// SPDX-License-Identifier: MIT
// What keeps other bits away before they come. Verification has to catch what each of them is for:
// tests switch them off.
#pragma once

#include <cstdlib>
#include <cstring>

namespace hw::live::runtime {

enum class GuardKind {
    Settings,   // an op runs again under the settings of its first run
    Exposures,  // bytes that code past the dispatcher may write are not read again
    Foreign,    // ops that are not the framework's own are random, and Python's run once
    Compiled,   // what compiled regions touch stays
};

class Guards {
public:
    static bool on(GuardKind kind) { return (off() & bit(kind)) == 0; }
    /// Names, in any form: "settings,exposures". Null: all are on.
    static void switchOff(const char* names) { off() = bitsOf(names); }

private:
    static unsigned bit(GuardKind kind) { return 1u << static_cast<unsigned>(kind); }
    static unsigned bitsOf(const char* names) {
        constexpr const char* kNames[] = {"settings", "exposures", "foreign", "compiled"};
        unsigned bits = 0;
        for (unsigned i = 0; names != nullptr && i < 4; ++i)
            if (std::strstr(names, kNames[i]) != nullptr) bits |= 1u << i;
        return bits;
    }
    static unsigned& off() {
        static unsigned bits = bitsOf(std::getenv("HIGHWATER_LIVE_WITHOUT"));
        return bits;
    }
};

}  // namespace hw::live::runtime
