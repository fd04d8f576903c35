#include "runtime/jit/digest.h"

#include <openssl/evp.h>

#include <cstdint>
#include <new>

namespace smt::runtime::jit {

// libcrypto fails here for want of memory only, as `new` would.
Digest::Digest() : context_(EVP_MD_CTX_new()) {
    if (!context_ || EVP_DigestInit_ex(context_, EVP_sha256(), nullptr) != 1) throw std::bad_alloc();
}

Digest::~Digest() { EVP_MD_CTX_free(context_); }

Digest& Digest::add(std::string_view text) {
    const uint64_t bytes = text.size();
    if (EVP_DigestUpdate(context_, &bytes, sizeof bytes) != 1) throw std::bad_alloc();
    if (EVP_DigestUpdate(context_, text.data(), text.size()) != 1) throw std::bad_alloc();
    return *this;
}

std::string Digest::hex() {
    unsigned char value[EVP_MAX_MD_SIZE];
    unsigned int bytes = 0;
    if (EVP_DigestFinal_ex(context_, value, &bytes) != 1) throw std::bad_alloc();
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    for (unsigned int i = 0; i < bytes; ++i) {
        text += kDigits[value[i] >> 4];
        text += kDigits[value[i] & 15];
    }
    return text;
}

}  // namespace smt::runtime::jit
