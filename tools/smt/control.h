// Questions to a running server over its control socket (runtime/protocol/handshake.h).
#pragma once

#include <optional>
#include <string>

#include "runtime/protocol/handshake.h"

namespace smt::tools {

// Sends kStatus or kStop to the server of `key` and returns its answer; nothing if no server listens
// there. Throws Failure if one does but answers nonsense, or not within five seconds.
std::optional<protocol::StatusReply> ask_server(const std::string& key, protocol::ControlKind question);

}  // namespace smt::tools
