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
        Count
    };
    Kind kind = Kind::Relu;
    std::size_t result = 0, a = 0, b = 0;
};
using Program = std::vector<Instruction>;

/// Registers hold tensors; the first ones are parameters, the last one outlives its step.
class Machine {
public:
    struct Doors {
        std::function<void(const at::Tensor&, bool stays)> look = [](const at::Tensor&, bool) {};
        std::function<void()> forward = [] {};
        std::function<void()> thread = [] {};  // another thread begins
    };
    Machine(std::uint64_t seed, Doors doors);

    void step(const Program& program);
    /// Bytes of all that is there, of what was looked at, and the generator's state.
    std::string state();

private:
    void run(const Instruction& instruction);
    at::Tensor operand(std::size_t index) const;
    void look(const at::Tensor& tensor, bool stays);
    void elsewhere(const std::function<void()>& work);

    Doors doors_;
    std::vector<at::Tensor> registers_;
    at::Tensor relu_, mask_, pooled_, indices_;  // what a backward pass would need
    std::string seen_;
};

Program randomProgram(std::mt19937& random, std::size_t length);
/// With one instruction more, less or another one, or with an early end.
Program changed(const Program& program, std::mt19937& random);

}  // namespace hw::test
