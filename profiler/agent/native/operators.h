// SPDX-License-Identifier: MIT
// What the schema of an op says, and how the dispatcher treats it; looked at once an op.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <array>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

namespace hw::profiler::native {

struct OperatorArgument {
    std::string key;                        // its name as in JSON, with the colon
    c10::TypeKind kind;                     // of what it holds: enumerations arrive as integers
    bool keyword = false;                   // cannot be given by position
    const c10::IValue* standard = nullptr;  // its default
};

/// Kernels have been registered since: which of them are the framework's is looked up again.
void kernelsChanged();

struct Operator {
    const c10::FunctionSchema* schema = nullptr;
    std::vector<OperatorArgument> arguments;
    std::size_t results = 0;
    bool random = false;
    bool onlyFills = false;  // see unseen_writes.h
    bool profiler = false;   // part of a profiler, not of the step
    bool adopts = false;     // sets a tensor upon a storage, which no argument names
    bool composite = false;  // only calls other ops, unless a device has a kernel of its own
    bool onCpu = false, onCuda = false;
    std::vector<std::size_t> writes;  // arguments whose bytes it changes
    std::string name;
    std::string overload;
    std::string encoded;  // both, as in a frame

    explicit Operator(const c10::OperatorHandle& op);

    /// Not the framework's own, or a kernel of its is not: what it draws and keeps, no schema says.
    bool foreign() const { return has(kForeign); }
    /// A kernel of its is a function of Python's.
    bool python() const { return has(kPython); }

    /// Whether it does the work on the device itself.
    bool worksOn(bool cuda) const { return !composite || (cuda ? onCuda : onCpu); }

private:
    static constexpr std::uint32_t kForeign = 1, kPython = 2, kGeneration = 4;
    bool has(std::uint32_t bit) const;

    const c10::OperatorHandle handle_;
    /// Whose its kernels are: bits, and how often kernels had changed then, times kGeneration.
    mutable std::atomic<std::uint32_t> kernels_{0};
};

/// Sets a tensor upon a storage, which no argument names.
bool adoptsStorage(const std::string& name, const std::string& overload);

/// Text as a JSON string.
std::string quoted(const std::string& text);

/// Of any op; it stays where it is.
const Operator& operatorOf(const c10::OperatorHandle& handle);

/// The ops that a thread has met.
class Operators {
public:
    const Operator& of(const c10::OperatorHandle& handle);

private:
    std::array<std::pair<const c10::FunctionSchema*, const Operator*>, 512> recent_{};
};

/// Names of dimensions are of a type that a boxed call cannot hold.
bool takesDimensionNames(const c10::OperatorName& op);

}  // namespace hw::profiler::native
