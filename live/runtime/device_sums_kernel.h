// SPDX-License-Identifier: MIT
// The sum of memory on a GPU: each word is mixed with its place, and the mixed words are added. The
// order of the words does not matter, so all threads can add theirs as they come.
#pragma once

namespace hw::live::runtime {

// The text for the device's compiler is what the host's compiles, too.
#define HW_CODE_AND_TEXT(name, ...) \
    __VA_ARGS__                     \
    inline constexpr char name[] = #__VA_ARGS__;

HW_CODE_AND_TEXT(
    kDeviceArithmetic,
    // The finalizer of splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
    inline unsigned long long hwMix(unsigned long long word, unsigned long long place) {
        unsigned long long x = word + (place + 1) * 0x9E3779B97F4A7C15ull;
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
        x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
        return x ^ (x >> 31);
    }

    // What one of `threads` threads adds. `data` is aligned to 8 bytes; `bytes` is any number.
    inline unsigned long long hwPartOfSum(const unsigned char* data, unsigned long long bytes,
                                          unsigned long long thread, unsigned long long threads) {
        const unsigned long long words = bytes / 8;
        const unsigned long long* const all = reinterpret_cast<const unsigned long long*>(data);
        unsigned long long sum = 0;
        for (unsigned long long i = thread; i < words; i += threads) sum += hwMix(all[i], i);
        if (bytes % 8 != 0 && thread == words % threads) {
            unsigned long long last = 0;
            for (unsigned long long i = words * 8; i < bytes; ++i) last = last << 8 | data[i];
            sum += hwMix(last, words);
        }
        return sum;
    })

inline constexpr char kDeviceKernel[] = R"(
extern "C" __global__ void hwSum(const unsigned char* data, unsigned long long bytes,
                                 unsigned long long* result) {
    __shared__ unsigned long long ofWarps[32];
    const unsigned long long thread = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    const unsigned long long threads = gridDim.x * (unsigned long long)blockDim.x;
    unsigned long long sum = hwPartOfSum(data, bytes, thread, threads);
    for (int distance = 16; distance > 0; distance /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, distance);
    if (threadIdx.x % 32 == 0) ofWarps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (unsigned warp = 1; warp < blockDim.x / 32; ++warp) sum += ofWarps[warp];
    atomicAdd(result, sum);
}
)";

}  // namespace hw::live::runtime
