// SPDX-License-Identifier: MIT
#include "verifier.h"

#include <algorithm>
#include <chrono>
#include <unordered_set>

#include "core/graph/unseen_ops.h"
#include "unseen_writes.h"

namespace hw::live::runtime {
namespace {

// Of a step, one part in so many: with what checksums displace from the caches, verification has
// taken up to 3.6 times what they take themselves (bench/live --verify), and is to take at most 1
// %.
constexpr std::int64_t kShare = 500;
constexpr std::uint16_t kSampled = 16;          // chunks, of which one is read
constexpr std::uint16_t kMostSparing = 1 << 9;  // likewise, at most
constexpr std::int64_t kWholeSteps = 2;         // at first, whatever they cost

/// On a GPU less is not worth a kernel. Seeds that attention without dropout leaves undefined take
/// less.
constexpr std::size_t kFewBytes = 64;

/// Not the agent's: nothing else is to happen while a storage is on its way.
std::int64_t clockNow() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

}  // namespace

bool leavesBytesUndefined(const std::string& op) {
    static const std::unordered_set<std::string> kPartly{
        "aten::_ctc_loss",        "aten::_cudnn_ctc_loss",
        "aten::_embedding_bag",   "aten::_cudnn_rnn",
        "aten::miopen_rnn",       "aten::_embedding_bag_forward_only",
        "aten::resize",           "aten::_flash_attention_forward",
        "aten::mkldnn_rnn_layer", "aten::mkldnn_rnn_layer_backward"};
    return kPartly.count(op) != 0 || core::leavesEmpty(op);
}

bool writesWhole(const c10::FunctionSchema& schema) {
    static const std::unordered_set<std::string> kFilling{
        "aten::zero_",      "aten::fill_",        "aten::copy_",      "aten::bernoulli_",
        "aten::uniform_",   "aten::normal_",      "aten::random_",    "aten::cauchy_",
        "aten::geometric_", "aten::exponential_", "aten::log_normal_"};
    if (leavesBytesUndefined(schema.name())) return false;
    return kFilling.count(schema.name()) != 0 ||
           std::any_of(schema.arguments().begin(), schema.arguments().end(),
                       [](const c10::Argument& argument) {
                           return argument.kwarg_only() && argument.is_out();
                       });
}

bool coversStorage(const c10::TensorImpl& tensor) {
    const c10::StorageImpl* const storage = tensor.unsafe_storage().unsafeGetStorageImpl();
    if (storage->device_type() == c10::DeviceType::CUDA && tensor.dtype().Match<std::uint8_t>())
        return false;  // what cuDNN reserves for the backward pass: it does not write all of it
    return tensor.is_non_overlapping_and_dense() &&
           static_cast<std::int64_t>(storage->nbytes()) ==
               tensor.numel() * static_cast<std::int64_t>(tensor.itemsize());
}

void Verifier::setLevel(Verify level) {
    level_ = level;
    every_ = level == Verify::Sampled ? kSampled : 1;
}

void Verifier::beginStep() {
    bytes_ = nanoseconds_ = 0;
    devices_.beginStep();
    queued_.clear();
    attributed_ = 0;
    began_ = clockNow();
    ++phase_;
}

void Verifier::endStep() {
    if (level_ != Verify::Auto || nanoseconds_ == 0 || ++steps_ < kWholeSteps) return;
    const std::int64_t most = (clockNow() - began_) / kShare;
    std::int64_t expected = nanoseconds_;
    for (; expected > most && every_ < kMostSparing; expected /= 2) every_ *= 2;
    for (; 3 * expected < most && every_ > 1; expected *= 2) every_ /= 2;
}

std::uint64_t Verifier::sum(const Checksum& which, const void* data, std::int64_t bytes) {
    const std::int64_t began = clockNow();
    const std::uint64_t value = agent_.checksum(data, bytes, which.every, which.phase);
    nanoseconds_ += clockNow() - began;
    return value;
}

Checksum Verifier::of(const c10::StorageImpl& storage, std::int32_t version) {
    Checksum checksum;
    if (!on() || bytesOf(storage) == nullptr) return checksum;
    if (storage.device_type() == c10::DeviceType::CUDA) {
        const auto stream = streams_ == nullptr ? std::nullopt : streams_->of(storage.device());
        if (stream && storage.nbytes() >= kFewBytes)
            checksum.value = devices_.take(storage, *stream);
        if (checksum.value != 0) checksum.version = version;
        return checksum;
    }
    if (storage.device_type() != c10::DeviceType::CPU) return checksum;
    checksum.version = version;
    checksum.every = every_;
    checksum.phase = phase_;
    checksum.value = sum(checksum, bytesOf(storage), static_cast<std::int64_t>(storage.nbytes()));
    return checksum;
}

bool Verifier::matches(const Checksum& checksum, const c10::StorageImpl& storage) {
    if (bytesOf(storage) == nullptr) return true;
    const auto bytes = static_cast<std::int64_t>(storage.nbytes());
    if (storage.device_type() != c10::DeviceType::CPU) {
        const auto stream = streams_->of(storage.device());
        if (!stream || !devices_.compare(checksum.value, storage, *stream)) return true;
        queued_.emplace_back();
        queued_.back().bytes = bytes;
        bytes_ += bytes;
        return true;
    }
    bytes_ += bytes / checksum.every;
    return sum(checksum, bytesOf(storage), bytes) == checksum.value;
}

void Verifier::attribute(const Mismatch& op) {
    for (; attributed_ < queued_.size(); ++attributed_) {
        const std::int64_t bytes = queued_[attributed_].bytes;
        queued_[attributed_] = op;
        queued_[attributed_].bytes = bytes;
    }
}

std::optional<Mismatch> Verifier::settle() {
    const std::vector<std::size_t> different = devices_.differences();
    const std::vector<Mismatch> queued = std::exchange(queued_, {});
    attributed_ = 0;
    if (different.empty()) return std::nullopt;
    return queued[different.front()];
}

Checksum Verifier::whole(const void* data, std::int64_t bytes) const {
    Checksum checksum;
    checksum.version = 0;
    checksum.value = agent_.checksum(data, bytes, 1, 0);
    return checksum;
}

bool Verifier::isSame(const Checksum& whole, const void* data, std::int64_t bytes) const {
    return agent_.checksum(data, bytes, 1, 0) == whole.value;
}

}  // namespace hw::live::runtime
