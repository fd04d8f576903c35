// The head of a session's state (session_state.cpp).
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/protocol/handshake.h"
#include "runtime/protocol/state.h"

namespace smt::runtime::server {

inline constexpr uint32_t kStateVersion = 3;

// The greeting of the session's program. Nothing: the state is of another build.
std::optional<protocol::Hello> take_hello(protocol::Reader& in);

}  // namespace smt::runtime::server
