// Generic addresses: a global address is itself, the other spaces appear in windows that no process
// has mapped (above the user half of the address space), each as an offset from its beginning.
#pragma once

#include <cstdint>

namespace smt::runtime::device::simulated {

inline constexpr uint64_t kWindowBytes = 1ull << 40;
inline constexpr uint64_t kSharedWindow = 0x8100'0000'0000;
inline constexpr uint64_t kLocalWindow = 0x8200'0000'0000;
inline constexpr uint64_t kParameterWindow = 0x8300'0000'0000;
inline constexpr uint64_t kFunctionWindow = 0x8400'0000'0000;  // "addresses" of functions, for calls only

inline bool in_window(uint64_t address, uint64_t window) { return address - window < kWindowBytes; }

// Functions stand 16 apart, by their number in the module.
inline uint64_t function_address(uint32_t number) { return kFunctionWindow + 16ull * (number + 1); }

}  // namespace smt::runtime::device::simulated
