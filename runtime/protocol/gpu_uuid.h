// A GPU's UUID as text. CUDA_VISIBLE_DEVICES wants it as "GPU-01234567-89ab-cdef-0123-456789abcdef"; without
// "GPU-" and dashes it is the key of the GPU's server (server_key.h).
#pragma once

#include <stddef.h>
#include <stdio.h>

namespace smt::protocol {

inline constexpr size_t kUuidBytes = 16;
inline constexpr size_t kVisibleBytes = 4 + 2 * kUuidBytes + 4 + 1;  // with its NUL
inline constexpr size_t kUuidKeyBytes = 2 * kUuidBytes + 1;

inline void write_uuid(const char (&uuid)[kUuidBytes], char (&key)[kUuidKeyBytes],
                       char (&visible)[kVisibleBytes]) {
    char* at = visible + snprintf(visible, sizeof visible, "GPU-");
    for (size_t i = 0; i < kUuidBytes; ++i) {
        const unsigned byte = static_cast<unsigned char>(uuid[i]);
        snprintf(key + 2 * i, 3, "%02x", byte);
        if (i == 4 || i == 6 || i == 8 || i == 10) *at++ = '-';
        at += snprintf(at, 3, "%02x", byte);
    }
}

}  // namespace smt::protocol
