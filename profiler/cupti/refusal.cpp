// SPDX-License-Identifier: MIT
#include "profiler/cupti/refusal.h"

namespace hw::profiler::cupti {
namespace {

/// A tool by the name that it has given to CUPTI, in the words of its users.
std::string toolOf(const std::string& holder) {
    const auto has = [&](const char* part) { return holder.find(part) != std::string::npos; };
    if (has("Nsight Systems") || has("nsys")) return "Nsight Systems (nsys)";
    if (has("Nsight Compute") || has("ncu")) return "Nsight Compute (ncu)";
    if (has("Kineto") || has("kineto")) return "torch.profiler (Kineto)";
    return holder;
}

}  // namespace

Refusal refusalOf(CUptiResult code, const std::string& call, const std::string& holder,
                  bool driver) {
    const std::string number = " (" + call + ": error " + std::to_string(code) + ")";
    switch (static_cast<int>(code)) {
        case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
            return {code,
                    "CUPTI is in use by " +
                        (holder.empty()
                             ? "another profiler, such as nsys, ncu or torch.profiler (Kineto)"
                             : toolOf(holder)) +
                        number,
                    "CUPTI serves one profiler at a time: end that one, or record without it"};
        case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
        case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
            return {code, "this user may not use the GPU's profiling interface" + number,
                    "run as root, or have the administrator load the driver with "
                    "NVreg_RestrictProfilingToAdminUsers=0"};
        case CUPTI_ERROR_NOT_INITIALIZED:
            return {code, "the NVIDIA driver is too old for this CUPTI" + number,
                    "update the driver, or use a CUPTI of the driver's own CUDA version"};
        case CUPTI_ERROR_UNKNOWN:
            if (driver) break;
            return noDriver(number);
        case CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED:
        case CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED:
        case CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED:
        case CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED:
        case CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED:
        case CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED:
            return {code, "CUPTI does not support this GPU as it is set up" + number,
                    "leave --gpu out: ops and tensors are recorded without CUPTI"};
        default:
            break;
    }
    return {code, "CUPTI failed" + number,
            "leave --gpu out: ops and tensors are recorded without CUPTI"};
}

Refusal noDriver(const std::string& number) {
    return {CUPTI_ERROR_UNKNOWN, "there is no NVIDIA driver" + number,
            "record on a machine with an NVIDIA GPU, or leave --gpu out"};
}

Refusal noLibrary(const std::string& looked) {
    return {kNoLibrary, "CUPTI was not found (looked for " + looked + ")",
            "install the CUDA toolkit's CUPTI, or name its libcupti.so in HIGHWATER_CUPTI"};
}

Refusal starved(unsigned long long launches) {
    return {kStarved,
            "CUPTI delivered no records although the program launched " + std::to_string(launches) +
                " kernels: another profiler took them",
            "end torch.profiler (Kineto) or whatever else uses CUPTI in the program, and record "
            "again"};
}

}  // namespace hw::profiler::cupti
