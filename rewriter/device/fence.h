// What the host and fenced kernels share (rewriter/ptx/fence).
//
// The block is the session's, in device memory that its kernels cannot write: it lies outside of the window.
// The record and the word of the error are in memory that its program can write, too.
//
//   window    the addresses that the session may ever have, all of them in granules
//   granule   1 in the table: all of it is mapped, and the session's
//   run       the longest row of such granules; most accesses are in it, and look no further
#pragma once

#include <cstdint>

namespace smt {

constexpr int kFenceGranuleShift = 21;  // 2 MiB: what the driver maps
constexpr uint64_t kFenceGranule = 1ull << kFenceGranuleShift;

// Of every fenced module: a constant of this name, which the host sets when it has loaded the module.
constexpr const char* kFenceConstant = "smt_fence";
struct FenceConstant {
    uint64_t block;  // address of a FenceBlock
    uint64_t image;  // a number of the host's, for the record
};
static_assert(sizeof(FenceConstant) == 16);

struct FenceBlock {
    uint64_t run, run_bytes;        // read together, as the next two
    uint64_t window, window_bytes;  // the table behind the block has a byte for each granule
    uint32_t error;                 // CUresult of the first fault; 0: none. From then on no kernel goes on
    uint32_t unused;
    uint64_t record;  // address of a FenceRecord
    uint64_t told;    // address of a 32-bit word that becomes `error`, behind the record
    uint64_t reserved;
};
static_assert(sizeof(FenceBlock) == 64);

// Written once, by the thread that sets FenceBlock::error.
struct FenceRecord {
    uint64_t address;
    uint64_t image;     // FenceConstant's
    uint32_t error;     // CUresult
    uint32_t what;      // FenceAccess, below
    uint32_t block[3];  // kNoFenceBlock: not known, as in a function that is called
    uint32_t thread[3];
};
static_assert(sizeof(FenceRecord) == 48);
constexpr uint32_t kNoFenceBlock = ~0u;

// One word that says what an access is: bits 0 to 7 its bytes, 8 and 9 its space, 10 and 11 its use, from
// bit 12 on the function that it is in, by its place in the module.
enum class FenceSpace : uint32_t { kGlobal, kGeneric, kShared };
enum class FenceUse : uint32_t { kLoad, kStore, kAtomic, kNone };  // kNone: no access, but trap or assert
struct FenceAccess {
    uint32_t bytes;  // a power of two up to 128
    FenceSpace space;
    FenceUse use;
    uint32_t function;
};
constexpr uint32_t kMostFenceFunctions = 1u << 20;
constexpr uint32_t fence_word(const FenceAccess& access) {
    return access.bytes | static_cast<uint32_t>(access.space) << 8 | static_cast<uint32_t>(access.use) << 10 |
           access.function << 12;
}
constexpr FenceAccess fence_access(uint32_t word) {
    return {word & 255, static_cast<FenceSpace>(word >> 8 & 3), static_cast<FenceUse>(word >> 10 & 3),
            word >> 12};
}

}  // namespace smt
