// SPDX-License-Identifier: MIT
#include "settings.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/ScalarType.h>
#include <torch/version.h>

#include <deque>
#include <mutex>
#include <string>

#ifdef __SSE2__
#include <immintrin.h>
#endif

namespace hw::live::runtime {
namespace {

#define HW_TORCH_SINCE(minor) \
    (TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= (minor)))

/// A setting: how it is read, and how it is set.
struct Setting {
    std::int64_t (*get)();
    void (*set)(std::int64_t value);
    bool onGpu = false;  // concerns kernels of a GPU only
};

at::Context& context() {
    return at::globalContext();
}

/// Flush to zero, denormals are zero, and the direction of rounding, of this thread.
constexpr unsigned kFloatControl = 0xe040;

std::int64_t floatControl() {
#ifdef __SSE2__
    return _mm_getcsr() & kFloatControl;
#else
    return 0;
#endif
}
void setFloatControl([[maybe_unused]] std::int64_t value) {
#ifdef __SSE2__
    _mm_setcsr((_mm_getcsr() & ~kFloatControl) | static_cast<unsigned>(value));
#endif
}

#define HW_FLAG(get, set) \
    [] { return std::int64_t{context().get()}; }, [](std::int64_t on) { context().set(on != 0); }

const char* const kMatmulPrecisions[] = {"highest", "high", "medium"};

/// -1: the program has set precision in two ways that contradict each other.
std::int64_t matmulPrecision() {
    try {
        return static_cast<std::int64_t>(context().float32MatmulPrecision());
    } catch (const c10::Error&) {
        return -1;
    }
}
void setMatmulPrecision(std::int64_t value) {
    if (value >= 0) context().setFloat32MatmulPrecision(std::string(kMatmulPrecisions[value]));
}

#if HW_TORCH_SINCE(11)
using at::Float32Backend;
using at::Float32Op;
using at::Float32Precision;

template <Float32Backend kBackend, Float32Op kOp>
std::int64_t precision() {
    return static_cast<std::int64_t>(context().float32Precision(kBackend, kOp));
}
/// An op without a precision of its own has that of its back end, which is tried first: what the
/// program sets there later is to hold for the op, too.
template <Float32Backend kBackend, Float32Op kOp>
void setPrecision(std::int64_t value) {
    context().setFloat32Precision(kBackend, kOp, Float32Precision::NONE);
    if (precision<kBackend, kOp>() != value)
        context().setFloat32Precision(kBackend, kOp, static_cast<Float32Precision>(value));
}
#define HW_PRECISION(backend, op)                       \
    &precision<Float32Backend::backend, Float32Op::op>, \
        &setPrecision<Float32Backend::backend, Float32Op::op>

template <at::CuBLASReductionOption (at::Context::*kGet)() const,
          void (at::Context::*kSet)(bool, bool)>
constexpr Setting reductionOf() {
    return {[] { return static_cast<std::int64_t>((context().*kGet)()); },
            [](std::int64_t value) { (context().*kSet)(value == 0, value != 2); }, true};
}
#endif

/// Some take others along: those come first.
const Setting kSettings[] = {
    {[] { return std::int64_t{at::get_num_threads()}; },
     [](std::int64_t threads) { at::set_num_threads(static_cast<int>(threads)); }},
    {&floatControl, &setFloatControl},
    {[] { return static_cast<std::int64_t>(c10::get_default_dtype_as_scalartype()); },
     [](std::int64_t type) {
         c10::set_default_dtype(c10::scalarTypeToTypeMeta(static_cast<c10::ScalarType>(type)));
     }},
    {[] {
         return std::int64_t{context().deterministicAlgorithms()} |
                std::int64_t{context().deterministicAlgorithmsWarnOnly()} << 1;
     },
     [](std::int64_t bits) {
         context().setDeterministicAlgorithms((bits & 1) != 0, (bits & 2) != 0);
     }},
    {HW_FLAG(userEnabledMkldnn, setUserEnabledMkldnn)},
    {HW_FLAG(userEnabledFlashSDP, setSDPUseFlash)},
    {HW_FLAG(userEnabledMathSDP, setSDPUseMath)},
    {[] { return static_cast<std::int64_t>(context().qEngine()); },
     [](std::int64_t engine) { context().setQEngine(static_cast<at::QEngine>(engine)); }},
    {HW_FLAG(userEnabledCuDNN, setUserEnabledCuDNN), true},
    {HW_FLAG(benchmarkCuDNN, setBenchmarkCuDNN), true},
    {HW_FLAG(deterministicCuDNN, setDeterministicCuDNN), true},
#if TORCH_VERSION_MAJOR >= 2
    {HW_FLAG(userEnabledMemEfficientSDP, setSDPUseMemEfficient)},
#endif
#if HW_TORCH_SINCE(2)
    {HW_FLAG(deterministicFillUninitializedMemory, setDeterministicFillUninitializedMemory)},
#endif
#if HW_TORCH_SINCE(7)
    {HW_FLAG(userEnabledNNPACK, setUserEnabledNNPACK)},
    {HW_FLAG(userEnabledCuDNNSDP, setSDPUseCuDNN), true},
    {HW_FLAG(allowFP16BF16ReductionMathSDP, setAllowFP16BF16ReductionMathSDP)},
#endif
    {&matmulPrecision, &setMatmulPrecision},
#if HW_TORCH_SINCE(11)
    {HW_PRECISION(GENERIC, ALL)},
    {HW_PRECISION(MKLDNN, ALL)},
    {HW_PRECISION(MKLDNN, MATMUL)},
    {HW_PRECISION(MKLDNN, CONV)},
    {HW_PRECISION(MKLDNN, RNN)},
    {HW_PRECISION(CUDA, ALL), true},
    {HW_PRECISION(CUDA, MATMUL), true},
    {HW_PRECISION(CUDA, CONV), true},
    {HW_PRECISION(CUDA, RNN), true},
    reductionOf<&at::Context::allowFP16ReductionCuBLAS,
                &at::Context::setAllowFP16ReductionCuBLAS>(),
    reductionOf<&at::Context::allowBF16ReductionCuBLAS,
                &at::Context::setAllowBF16ReductionCuBLAS>(),
    {HW_FLAG(allowFP16AccumulationCuBLAS, setAllowFP16AccumulationCuBLAS), true},
#else
    {HW_FLAG(allowTF32CuDNN, setAllowTF32CuDNN), true},
    {HW_FLAG(allowFP16ReductionCuBLAS, setAllowFP16ReductionCuBLAS), true},
#endif
};

bool concerns(const Setting& setting) {
    static const bool gpu = at::hasCUDA();
    return gpu || !setting.onGpu;
}

}  // namespace

const Settings* Settings::now() {
    static_assert(std::size(kSettings) <= kMost);
    Settings settings;
    for (std::size_t i = 0; i < std::size(kSettings); ++i)
        if (concerns(kSettings[i])) settings.values_[i] = kSettings[i].get();
    thread_local const Settings* last = nullptr;
    if (last != nullptr && *last == settings) return last;
    static std::mutex lock;
    static std::deque<Settings>& known = *new std::deque<Settings>;  // few, and they stay
    const std::lock_guard guard(lock);
    for (const Settings& each : known)
        if (each == settings) return last = &each;
    known.push_back(settings);
    return last = &known.back();
}

void Settings::apply() const {
    for (std::size_t i = 0; i < std::size(kSettings); ++i)
        if (concerns(kSettings[i]) && kSettings[i].get() != values_[i])
            kSettings[i].set(values_[i]);
}

UnderSettings::UnderSettings(const Settings* then) : before_(Settings::now()) {
    if (then == nullptr || then == before_) return;
    changed_ = true;
    then->apply();
}

UnderSettings::~UnderSettings() {
    if (changed_) before_->apply();
}

}  // namespace hw::live::runtime
