// A growing byte buffer in the encoding of runtime/protocol/codec.h, without libstdc++. When memory runs out
// or the size would exceed kMostCapturedBytes, `good` becomes false and stays false.
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/protocol/handshake.h"

namespace smt::interpose::capture {

// Plain data without a destructor: the owner calls release().
struct Bytes {
    char* data = nullptr;
    uint64_t size = 0;
    uint64_t capacity = 0;
    bool good = true;

    void scalar(uint64_t value) { raw(&value, sizeof value); }
    void array(const void* from, uint64_t count) {
        scalar(count);
        raw(from, count);
    }
    void string(const char* text) { array(text, strlen(text) + 1); }
    void append(const Bytes& other) {
        good = good && other.good;
        raw(other.data, other.size);
    }
    void release() {
        free(data);
        *this = Bytes();
    }

private:
    void raw(const void* from, uint64_t count) {
        const uint64_t padded = (count + 7) & ~7ull;
        if (!good || !make_room(count, padded)) return;
        if (count) memcpy(data + size, from, count);
        memset(data + size + count, 0, padded - count);
        size += padded;
    }
    bool make_room(uint64_t count, uint64_t padded) {
        if (count > protocol::kMostCapturedBytes || padded > protocol::kMostCapturedBytes - size)
            return good = false;
        if (size + padded <= capacity) return true;
        uint64_t wanted = size + padded > 2 * capacity ? size + padded : 2 * capacity;
        char* grown = static_cast<char*>(realloc(data, wanted));
        if (!grown) return good = false;
        data = grown;
        capacity = wanted;
        return true;
    }
};

}  // namespace smt::interpose::capture
