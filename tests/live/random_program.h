// SPDX-License-Identifier: MIT
// Small programs that train nothing, but do what training does to storages: ops, views, writes in
// place, random numbers, parameters that outlive the step.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

namespace hw::test {

struct Instruction {
    enum class Kind {
        Relu,
        Sigmoid,
        Add,
        Mul,
        Mm,
        AddInPlace,
        MulInPlace,
        ReluInPlace,
        ReluBackward,
        DropoutBackward,
        Pool,
        PoolBackward,
        Transpose,
        Row,
        Dropout,
        Noise,
        Rand,
        Sum,
        LetGo,    // of a register
        Look,     // at its bytes, past the dispatcher
        Read,     // by an op of another thread
        Write,    // likewise
        Fail,     // an op raises, and the program gives the step up
        Forward,  // the forward pass begins
        Node,     // of autograd, by an op
        Grow,     // adds in place where nobody else refers to the storage, as autograd does
        // What no op shows, in programs that have it.
        Fill,        // makes zeros, gives their address out and fills them, as through numpy
        FillBlind,   // the same without telling, as extensions do
        Poke,        // gives a tensor's address out and writes there
        FromBuffer,  // reads memory that is not the framework's
        Refill,      // which gets other bytes
        Flush,       // denormals become zero from here on, or no longer
        Tiny,        // numbers that are denormal for a while
        Foreign,     // an op that is not the framework's draws random numbers without saying so
        Sparse,      // a tensor that keeps the storages of others
        Dense,       // and gives their elements back
        Count
    };
    Kind kind = Kind::Relu;
    std::size_t result = 0, a = 0, b = 0;
};
using Program = std::vector<Instruction>;

/// Registers hold tensors; the first ones are parameters, the last one outlives its step.
class Machine {
public:
    struct Hooks {
        std::function<void(const at::Tensor&, bool stays)> look = [](const at::Tensor&, bool) {};
        std::function<void()> forward = [] {};
        std::function<void()> thread = [] {};  // another thread begins
    };
    Machine(std::uint64_t seed, Hooks hooks);

    void step(const Program& program);
    /// Bytes of all that is there, of what was looked at, and the generator's state.
    std::string state();

private:
    void run(const Instruction& instruction);
    at::Tensor operand(std::size_t index) const;
    void look(const at::Tensor& tensor, bool stays);
    void elsewhere(const std::function<void()>& work);
    void runUnseen(const Instruction& instruction);
    void write(const at::Tensor& tensor);

    Hooks hooks_;
    std::vector<at::Tensor> registers_;
    at::Tensor relu_, mask_, pooled_, indices_;  // what a backward pass would need
    at::Tensor sparse_;
    std::vector<float> buffer_;
    float written_ = 0;  // by no op, last
    std::string seen_;
};

/// `unseen`: with what no op shows.
Program randomProgram(std::mt19937& random, std::size_t length, bool unseen = false);
/// With one instruction more, less or another one, or with an early end.
Program changed(const Program& program, std::mt19937& random);

}  // namespace hw::test
