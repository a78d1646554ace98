// SPDX-License-Identifier: MIT
#include "tests/live/random_program.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>
#include <thread>

namespace hw::test {
namespace {

using Kind = Instruction::Kind;

constexpr std::size_t kParameters = 3, kRegisters = 9;
constexpr std::int64_t kSide = 4;

bool isSquare(const at::Tensor& tensor) {
    return tensor.dim() == 2 && tensor.size(0) == kSide && tensor.size(1) == kSide;
}

Instruction randomInstruction(std::mt19937& random) {
    Instruction made;
    made.kind = static_cast<Kind>(random() % static_cast<unsigned>(Kind::Look));
    if (random() % 24 == 0) made.kind = Kind::Look;
    if (random() % 48 == 0) made.kind = Kind::Read;
    if (random() % 96 == 0) made.kind = Kind::Write;
    made.result = kParameters + random() % (kRegisters - kParameters);
    made.a = random() % kRegisters;
    made.b = random() % kRegisters;
    // Most programs write parameters at the end of their steps only.
    const bool writes = made.kind == Kind::AddInPlace || made.kind == Kind::MulInPlace ||
                        made.kind == Kind::ReluInPlace || made.kind == Kind::Noise;
    if (writes && made.a < kParameters && random() % 8 != 0) made.a = made.result;
    return made;
}

}  // namespace

Machine::Machine(std::uint64_t seed, Doors doors)
    : doors_(std::move(doors)), registers_(kRegisters) {
    at::manual_seed(seed);
    for (std::size_t i = 0; i < kParameters; ++i) registers_[i] = at::rand({kSide, kSide});
    registers_.back() = at::rand({kSide, kSide});
}

at::Tensor Machine::operand(std::size_t index) const {
    return registers_[index].defined() ? registers_[index] : registers_[index % kParameters];
}

void Machine::look(const at::Tensor& tensor, bool stays) {
    doors_.look(tensor, stays);
    const c10::StorageImpl* const storage =
        tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
    const auto* const bytes =
        static_cast<const char*>(static_cast<const c10::StorageImpl*>(storage)->data_ptr().get());
    if (bytes == nullptr) throw std::logic_error("a storage without its bytes was looked at");
    seen_.append(bytes, storage->nbytes());
}

void Machine::elsewhere(const std::function<void()>& work) {
    std::thread([&] {
        doors_.thread();
        try {
            work();
        } catch (const c10::Error&) {
            seen_ += "given up elsewhere";
        }
    }).join();
}

void Machine::run(const Instruction& i) {
    const at::Tensor a = operand(i.a), b = operand(i.b);
    at::Tensor& result = registers_[i.result];
    const at::Tensor& fitting = isSquare(a) || a.sizes() == b.sizes() ? b : a;
    switch (i.kind) {
        case Kind::Relu:
            result = relu_ = at::relu(a);
            return;
        case Kind::Sigmoid:
            result = at::sigmoid(a);
            return;
        case Kind::Add:
            result = at::add(a, b);
            return;
        case Kind::Mul:
            result = at::mul(a, b);
            return;
        case Kind::Mm:
            result = isSquare(a) && isSquare(b) ? at::mm(a, b) : at::tanh(a);
            return;
        case Kind::AddInPlace:
            a.add_(fitting, 0.5);
            return;
        case Kind::MulInPlace:
            a.mul_(fitting);
            return;
        case Kind::ReluInPlace:
            at::relu_(const_cast<at::Tensor&>(a));
            return;
        case Kind::ReluBackward:
            result = relu_.defined() && a.sizes() == relu_.sizes()
                         ? at::threshold_backward(a, relu_, 0)
                         : at::tanh(a);
            return;
        case Kind::DropoutBackward:
            result = mask_.defined() && a.sizes() == mask_.sizes()
                         ? at::native_dropout_backward(a, mask_, 2)
                         : at::tanh(a);
            return;
        case Kind::Pool:
            if (!isSquare(a)) return;
            pooled_ = a.unsqueeze(0);
            std::tie(result, indices_) = at::max_pool2d_with_indices(pooled_, {2, 2});
            result = result.sum(0);
            return;
        case Kind::PoolBackward:
            if (!indices_.defined()) return;
            result = at::max_pool2d_with_indices_backward(
                         at::ones_like(indices_, pooled_.options()), pooled_, {2, 2}, {2, 2},
                         {0, 0}, {1, 1}, false, indices_)
                         .squeeze(0);
            return;
        case Kind::Transpose:
            result = a.dim() == 2 ? a.t() : a.view({1});
            return;
        case Kind::Row:
            result = a.dim() == 2 ? a.narrow(0, a.size(0) - 1, 1) : a.view({1});
            return;
        case Kind::Dropout:
            std::tie(result, mask_) = at::native_dropout(a, 0.5, true);
            return;
        case Kind::Noise:
            a.uniform_();
            return;
        case Kind::Rand:
            result = at::rand({kSide, kSide});
            return;
        case Kind::Sum:
            result = at::sum(a);
            return;
        case Kind::LetGo:
            result = at::Tensor();
            return;
        case Kind::Look:
            look(a, i.b % 2 == 0);
            return;
        case Kind::Read:
            elsewhere([&] { look(a.clone(), false); });
            return;
        case Kind::Write:
            elsewhere([&] { a.add_(fitting, 0.25); });
            return;
        case Kind::Fail:
            at::mm(at::sum(a), b);
            return;
        case Kind::Forward:
            doors_.forward();
            return;
        case Kind::Node:
            result = at::sigmoid(a.detach().requires_grad_()).detach();
            return;
        case Kind::Grow:
            result = a.storage().use_count() == 1 ? a.add_(b) : at::add(a, b);
            return;
        case Kind::Count:
            return;
    }
}

void Machine::step(const Program& program) {
    for (std::size_t i = kParameters; i + 1 < kRegisters; ++i) registers_[i] = at::Tensor();
    relu_ = mask_ = pooled_ = indices_ = at::Tensor();
    try {
        for (const Instruction& each : program) run(each);
    } catch (const c10::Error&) {
        seen_ += "given up";
    }
}

std::string Machine::state() {
    for (const at::Tensor& each : registers_)
        if (each.defined()) look(each, false);
    const at::Tensor generator = at::globalContext().defaultGenerator(at::kCPU).get_state();
    return seen_ + std::string(static_cast<const char*>(generator.data_ptr()), generator.nbytes());
}

Program randomProgram(std::mt19937& random, std::size_t length) {
    Program program;
    for (std::size_t i = 0; i < length; ++i) program.push_back(randomInstruction(random));
    for (std::size_t parameter = 0; parameter < kParameters; ++parameter)
        program.push_back({Kind::AddInPlace, 0, parameter, random() % kRegisters});
    const auto at = static_cast<std::ptrdiff_t>(random() % (length / 2));
    program.insert(program.begin() + at, {Kind::Forward});
    return program;
}

Program changed(const Program& program, std::mt19937& random) {
    Program other = program;
    const auto at = other.begin() + static_cast<std::ptrdiff_t>(random() % other.size());
    switch (random() % 6) {
        case 0:
            other.insert(at, randomInstruction(random));
            break;
        case 1:
            *at = randomInstruction(random);
            break;
        case 2:
            other.erase(at);
            break;
        case 3:
            other.erase(at, other.end());
            break;
        case 4:
            other.insert(at, {Kind::Fail, 0, random() % kRegisters, random() % kRegisters});
            break;
        default:  // something else before the forward pass
            for (int n = 0; n < 3; ++n)
                other.insert(other.begin() + static_cast<std::ptrdiff_t>(random() % 3),
                             randomInstruction(random));
    }
    return other;
}

}  // namespace hw::test
