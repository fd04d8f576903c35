// The processor's half of a pageable copy, which is the slower half: the GPU moves 55 GB/s. Two cores share
// it (copy_thread.h).
//
// Measured: one core, one thread, 512 MiB through slots of 256 KiB (Xeon of 2023, 2 MiB of L2 cache), GB/s:
//                                    into slots    out of slots (in L2, in L3)
//   memcpy                               10.7           9.6    9.3
//   prefetch, ordinary stores            14.1           8.0    7.6
//   prefetch, stores past the cache      11.8          22.3   14.2
//
// Into a slot the stores hit the cache, since slots are reused, and the processor waits for the source:
// prefetching 2 KiB ahead covers page boundaries. Out of a slot the destination is in no cache, and an
// ordinary store would read each line before writing it. Wider registers change neither. Small blocks use
// plain memcpy: the application reads them next.
#include <emmintrin.h>

#include <cstring>

#include "interpose/driver/staging.h"

namespace smt::interpose::driver {
namespace {

constexpr uint64_t kLine = 64;
constexpr uint64_t kPlain = 32u << 10;
constexpr uint64_t kFillAhead = 2048;
constexpr uint64_t kDrainAhead = 4096;

const __m128i* vector(const char* from) { return reinterpret_cast<const __m128i*>(from); }
__m128i* vector(char* to) { return reinterpret_cast<__m128i*>(to); }

}  // namespace

void fill_bytes(char* slot, const char* from, uint64_t count) {
    uint64_t at = 0;
    if (count > kPlain) {
        for (; at + kLine <= count; at += kLine) {
            _mm_prefetch(from + at + kFillAhead, _MM_HINT_T0);
            for (uint64_t i = 0; i < kLine; i += 16)
                _mm_storeu_si128(vector(slot + at + i), _mm_loadu_si128(vector(from + at + i)));
        }
    }
    std::memcpy(slot + at, from + at, count - at);
}

void drain_bytes(char* to, const char* slot, uint64_t count) {
    uint64_t at = 0;
    if (count > kPlain) {
        at = -reinterpret_cast<uint64_t>(to) & (kLine - 1);
        std::memcpy(to, slot, at);
        for (; at + kLine <= count; at += kLine) {
            _mm_prefetch(slot + at + kDrainAhead, _MM_HINT_T0);
            for (uint64_t i = 0; i < kLine; i += 16)
                _mm_stream_si128(vector(to + at + i), _mm_loadu_si128(vector(slot + at + i)));
        }
        _mm_sfence();
    }
    std::memcpy(to + at, slot + at, count - at);
}

}  // namespace smt::interpose::driver
