// The contract between libsmt.so and smtd: which version of it this build speaks.
//
// Bump kProtocolVersion whenever a struct of this folder, an opcode, or the meaning of either
// changes. The table of driver functions takes part by itself: kTableHash (generated) changes when
// a line of interpose/api/ does. A server refuses a client whose pair differs, with both pairs in
// the message, and the client falls back as SMT_FALLBACK says.
#pragma once

#include <cstdint>

namespace smt::protocol {

inline constexpr uint32_t kMagic = 0x31544d53;  // "SMT1"
inline constexpr uint32_t kProtocolVersion = 9;

}  // namespace smt::protocol
