// Questions to a running server over its control socket (runtime/protocol/handshake.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/protocol/handshake.h"

namespace smt::tools {

// Each of these: nothing, if no server of `key` listens there. Throws Failure if one does but answers nonsense, or not
// within five seconds.

// Sends kStatus or kStop to the server of `key` and returns its answer.
std::optional<protocol::StatusReply> ask_server(const std::string& key, protocol::ControlKind question);

struct ServerStatus {
    std::string key;
    protocol::StatusReply server;
    std::vector<protocol::TenantStatus> tenants;
};
std::optional<ServerStatus> ask_tenants(const std::string& key);

// The reply says whether it has that policy now.
std::optional<protocol::PolicyReply> ask_for_policy(const std::string& key, const std::string& name);

}  // namespace smt::tools
