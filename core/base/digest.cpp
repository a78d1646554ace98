// SPDX-License-Identifier: MIT
#include "core/base/digest.h"

#include <nettle/sha2.h>
#include <nettle/version.h>

#include <array>

namespace hw::core {

struct Digest::State {
    sha256_ctx context{};
    std::string pending;  // hashed in blocks, not per integer

    void flush() {
        sha256_update(&context, pending.size(),
                      reinterpret_cast<const std::uint8_t*>(pending.data()));
        pending.clear();
    }
};

Digest::Digest() : state_(std::make_unique<State>()) {
    sha256_init(&state_->context);
}

Digest::~Digest() = default;

void Digest::add(std::int64_t value) {
    auto bits = static_cast<std::uint64_t>(value);
    for (int i = 0; i < 8; ++i, bits >>= 8)
        state_->pending.push_back(static_cast<char>(bits & 0xff));
    if (state_->pending.size() > 4096) state_->flush();
}

void Digest::add(std::string_view text) {
    add(static_cast<std::int64_t>(text.size()));
    state_->pending.append(text);
}

std::string Digest::hex() {
    state_->flush();
    std::array<std::uint8_t, SHA256_DIGEST_SIZE> digest{};
#if NETTLE_VERSION_MAJOR >= 4
    sha256_digest(&state_->context, digest.data());
#else
    sha256_digest(&state_->context, digest.size(), digest.data());
#endif
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    for (const std::uint8_t byte : digest) {
        text.push_back(kDigits[byte >> 4]);
        text.push_back(kDigits[byte & 15]);
    }
    return text;
}

}  // namespace hw::core
