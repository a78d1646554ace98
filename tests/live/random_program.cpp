// SPDX-License-Identifier: MIT
#include "tests/live/random_program.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <algorithm>
#include <exception>
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

/// Draws from the default generator, which neither a tag nor an argument says.
at::Tensor noisy(const at::Tensor& tensor) {
    return tensor + at::rand(tensor.sizes());
}

TORCH_LIBRARY(hwtest, library) {
    library.def("noisy(Tensor x) -> Tensor");
}
TORCH_LIBRARY_IMPL(hwtest, CPU, library) {
    library.impl("noisy", noisy);
}

Instruction randomInstruction(std::mt19937& random, bool unseen = false) {
    Instruction made;
    made.kind = static_cast<Kind>(random() % static_cast<unsigned>(Kind::Look));
    if (random() % 24 == 0) made.kind = Kind::Look;
    if (random() % 48 == 0) made.kind = Kind::Read;
    if (random() % 96 == 0) made.kind = Kind::Write;
    if (unseen && random() % 4 == 0)
        made.kind = static_cast<Kind>(
            static_cast<unsigned>(Kind::Fill) +
            random() % (static_cast<unsigned>(Kind::Count) - static_cast<unsigned>(Kind::Fill)));
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

Machine::Machine(std::uint64_t seed, Hooks hooks)
    : hooks_(std::move(hooks)), registers_(kRegisters) {
    at::manual_seed(seed);
    for (std::size_t i = 0; i < kParameters; ++i) registers_[i] = at::rand({kSide, kSide});
    registers_.back() = at::rand({kSide, kSide});
    buffer_.assign(kSide * kSide, 0.5F);
}

at::Tensor Machine::operand(std::size_t index) const {
    return registers_[index].defined() ? registers_[index] : registers_[index % kParameters];
}

void Machine::look(const at::Tensor& tensor, bool stays) {
    hooks_.look(tensor, stays);
    const c10::StorageImpl* const storage =
        tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
    const auto* const bytes =
        static_cast<const char*>(static_cast<const c10::StorageImpl*>(storage)->data_ptr().get());
    if (bytes == nullptr) throw std::logic_error("a storage without its bytes was looked at");
    seen_.append(bytes, storage->nbytes());
}

void Machine::elsewhere(const std::function<void()>& work) {
    std::exception_ptr raised;
    std::thread([&] {
        hooks_.thread();
        try {
            work();
        } catch (const c10::Error&) {
            seen_ += "given up elsewhere";
        } catch (...) {
            raised = std::current_exception();
        }
    }).join();
    if (raised) std::rethrow_exception(raised);
}

/// By no op.
void Machine::write(const at::Tensor& tensor) {
    const at::Tensor whole = tensor.is_contiguous() ? tensor : at::Tensor();
    if (!whole.defined() || whole.scalar_type() != at::kFloat) return;
    auto* const to = static_cast<float*>(whole.data_ptr());
    for (std::int64_t k = 0; k < whole.numel(); ++k) to[k] = written_ += 0.125F;
    if (written_ > 64) written_ = -64;
}

void Machine::runUnseen(const Instruction& i) {
    const at::Tensor a = operand(i.a);
    at::Tensor& result = registers_[i.result];
    switch (i.kind) {
        case Kind::Fill:
            result = at::zeros({kSide, kSide});
            hooks_.look(result, true);
            return write(result);
        case Kind::FillBlind:
            result = at::zeros({kSide, kSide});
            return write(result);
        case Kind::Poke:
            if (i.a < kParameters) return;
            hooks_.look(a, true);
            return write(a);
        case Kind::FromBuffer:
            result = at::mul(at::from_blob(buffer_.data(), {kSide, kSide}),
                             isSquare(a) ? a : registers_.front());
            return;
        case Kind::Refill:
            for (float& each : buffer_) each = written_ += 0.25F;
            return;
        case Kind::Flush:
            at::globalContext().setFlushDenormal(i.b % 2 == 0);
            return;
        case Kind::Tiny:
            result = at::mul(at::mul(a, 1e-41), 1e38);
            return;
        case Kind::Foreign: {
            static const auto op = c10::Dispatcher::singleton()
                                       .findSchemaOrThrow("hwtest::noisy", "")
                                       .typed<at::Tensor(const at::Tensor&)>();
            result = op.call(a);
            return;
        }
        case Kind::Sparse:
            if (!isSquare(a) || a.scalar_type() != at::kFloat) return;
            sparse_ = at::sparse_coo_tensor(at::arange(kSide).mul(1).unsqueeze(0), at::mul(a, 0.5),
                                            {kSide, kSide});
            return;
        default:
            if (sparse_.defined()) result = sparse_.to_dense();
    }
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
            hooks_.forward();
            return;
        case Kind::Node:
            result = at::sigmoid(a.detach().requires_grad_()).detach();
            return;
        case Kind::Grow:
            result = a.storage().use_count() == 1 ? a.add_(b) : at::add(a, b);
            return;
        default:
            return runUnseen(i);
    }
}

void Machine::step(const Program& program) {
    for (std::size_t i = kParameters; i + 1 < kRegisters; ++i) registers_[i] = at::Tensor();
    relu_ = mask_ = pooled_ = indices_ = sparse_ = at::Tensor();
    at::globalContext().setFlushDenormal(false);
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

Program randomProgram(std::mt19937& random, std::size_t length, bool unseen) {
    Program program;
    for (std::size_t i = 0; i < length; ++i) program.push_back(randomInstruction(random, unseen));
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
