// SPDX-License-Identifier: MIT
// What to say when CUPTI cannot be used.
#pragma once

#include <cupti.h>

#include <string>

namespace hw::profiler::cupti {

/// Of ours, beside CUPTI's own codes.
inline constexpr int kNoLibrary = 2001;
inline constexpr int kStarved = 2002;

struct Refusal {
    int code = 0;  // of CUPTI, or of ours
    std::string what, hint;
};

/// `call`: the function of CUPTI that refused. `holder`: who has CUPTI, where it tells; `driver`:
/// whether the driver's library is on this machine.
Refusal refusalOf(CUptiResult code, const std::string& call, const std::string& holder,
                  bool driver);
/// `number`: what CUPTI answered, in parentheses; empty where it was not asked.
Refusal noDriver(const std::string& number = {});
Refusal noLibrary(const std::string& looked);
/// The program launched kernels, of which CUPTI delivered no record.
Refusal starved(unsigned long long launches);

}  // namespace hw::profiler::cupti
