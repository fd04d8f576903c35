// What every test program needs: checked calls, repeatable data, and a result line.
// A program prints only what is the same in every run, and leaves with 1 when anything was wrong.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#define CHECK(call) check((call), #call, __LINE__)

inline void check(cudaError_t status, const char* text, int line) {
    if (status == cudaSuccess) return;
    std::printf("line %d: %s: %s (%d)\n", line, text, cudaGetErrorName(status), static_cast<int>(status));
    std::fflush(stdout);
    std::_Exit(1);
}

// Knuth's and L'Ecuyer's constants; the same numbers on every machine.
struct Random {
    uint64_t state = 88172645463325252ull;
    uint32_t next() {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        return static_cast<uint32_t>(state >> 33);
    }
    int below(int limit) { return static_cast<int>(next() % static_cast<uint32_t>(limit)); }
};

class Result {
public:
    void expect(bool right, const char* what) {
        if (right) return;
        ++wrong_;
        std::printf("WRONG: %s\n", what);
    }
    // FNV-1a over the bytes that the device produced.
    void fold(const void* data, size_t bytes) {
        const auto* byte = static_cast<const unsigned char*>(data);
        for (size_t i = 0; i < bytes; ++i) hash_ = (hash_ ^ byte[i]) * 1099511628211ull;
    }
    template <typename Value>
    void fold(const Value& value) {
        fold(&value, sizeof value);
    }
    int finish() {
        std::printf("checksum %016llx\n", static_cast<unsigned long long>(hash_));
        return wrong_ == 0 ? 0 : 1;
    }

private:
    uint64_t hash_ = 14695981039346656037ull;
    int wrong_ = 0;
};
