// Reading out of untrusted bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace smt::image {

constexpr uint32_t kWrapperMagic = 0x466243b1;  // of the struct that names a program's fatbin

template <typename T>
bool read_at(std::string_view bytes, uint64_t at, T* value) {
    if (at > bytes.size() || sizeof(T) > bytes.size() - at) return false;
    std::memcpy(value, bytes.data() + at, sizeof(T));
    return true;
}

// 90 for a cubin of sm_90; 0: it is no cubin.
int cubin_architecture(std::string_view image);

}  // namespace smt::image
