// SPDX-License-Identifier: MIT
#include "core/base/digest.h"

#include <openssl/evp.h>

#include <array>

namespace hw::core {

struct Digest::State {
    EVP_MD_CTX* context = EVP_MD_CTX_new();
    std::string pending;  // EVP is called in blocks, not per integer

    ~State() { EVP_MD_CTX_free(context); }
    void flush() {
        EVP_DigestUpdate(context, pending.data(), pending.size());
        pending.clear();
    }
};

Digest::Digest() : state_(std::make_unique<State>()) {
    EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr);
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
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned length = 0;
    EVP_DigestFinal_ex(state_->context, digest.data(), &length);
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    for (unsigned i = 0; i < length; ++i) {
        text.push_back(kDigits[digest[i] >> 4]);
        text.push_back(kDigits[digest[i] & 15]);
    }
    return text;
}

}  // namespace hw::core
