// Questions to a running server over its control socket (runtime/protocol/handshake.h).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/protocol/handshake.h"

namespace smt::tools {

// Each of these: nothing, if no server of `key` listens there. Throws Failure if one does but answers
// nonsense, or not within five seconds.

// Sends kStatus or kStop to the server of `key` and returns its answer.
std::optional<protocol::StatusReply> ask_server(const std::string& key, protocol::ControlKind question);

// Waits for the end of a server that was told to stop: before it, and after it answers no more, sessions
// write their last entries and files are removed. False if it still runs after `timeout`.
bool wait_for_end(pid_t server, std::chrono::milliseconds timeout);

// Calls `ask` with the key of each server's socket; it returns whether a server listens there. Throws Failure
// if none does.
void at_servers(const std::function<bool(const std::string& key)>& ask);

struct ServerStatus {
    std::string key;
    protocol::StatusReply server;
    std::vector<protocol::TenantStatus> tenants;
};
std::optional<ServerStatus> ask_tenants(const std::string& key);

// What its device says about itself, and how much of its memory is free.
std::optional<protocol::DeviceReply> ask_device(const std::string& key);

// What this process's environment says of the settings of servers and differs from what the server has; a
// line each. Says so in the server's log, too.
std::vector<std::string> ask_differences(const std::string& key, const std::string& tenant);

// Suspends or resumes a tenant. Waits for as long as the server takes for it.
std::optional<protocol::SuspendReply> ask_to_suspend(const std::string& key,
                                                     const protocol::SuspendRequest& request);

// The reply says whether it has that policy now.
std::optional<protocol::ChangeReply> ask_for_policy(const std::string& key, const std::string& name);

// The reply says whether the tenant has that limit now. bytes; 0: the device's.
std::optional<protocol::ChangeReply> ask_for_memory_limit(const std::string& key, const std::string& tenant,
                                                          uint64_t limit);

// The reply says whether the tenant's programs have these now; nothing stays as it is.
struct Terms {
    std::optional<int> priority;
    std::optional<double> weight;
};
std::optional<protocol::ChangeReply> ask_for_terms(const std::string& key, const std::string& tenant,
                                                   const Terms& terms);

}  // namespace smt::tools
