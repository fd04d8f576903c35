// The version of the contract between libsmt.so and smtd in this build.
//
// Increment kProtocolVersion if a struct of this folder, an opcode, or the meaning of either changes. The
// table of driver functions needs no increment: kTableHash (generated) changes if a line of
// runtime/protocol/api/ does. A server refuses a client with a different pair, with both pairs in the
// message, and the client falls back according to SMT_FALLBACK.
#pragma once

#include <cstdint>

namespace smt::protocol {

inline constexpr uint32_t kMagic = 0x31544d53;  // "SMT1"
inline constexpr uint32_t kProtocolVersion = 29;

}  // namespace smt::protocol
