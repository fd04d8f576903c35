// SHA-256 (libcrypto's) over a list of texts. Each goes in with its length, so that {"ab", "c"} and
// {"a", "bc"} differ.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace smt::runtime::jit {

class Digest {
public:
    Digest();
    ~Digest();
    Digest(const Digest&) = delete;
    Digest& operator=(const Digest&) = delete;

    Digest& add(std::string_view text);
    std::string hex();  // 64 characters; the last call

private:
    evp_md_ctx_st* context_;
};

inline std::string digest(std::initializer_list<std::string_view> texts) {
    Digest all;
    for (std::string_view text : texts) all.add(text);
    return all.hex();
}

}  // namespace smt::runtime::jit
