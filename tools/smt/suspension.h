// What smt suspend and smt resume share: the question to the servers where the tenant has programs, and the
// answer as JSON.
#pragma once

#include <string>

#include "runtime/protocol/handshake.h"
#include "tools/smt/command.h"

namespace smt::tools {

// Sends the request for the tenant that the command line names to each server where a program of it runs, and
// prints a line for each: `line` of the answer, or JSON if `options` has --json. The exit code. Throws
// Misuse, and Failure with the server's reason.
int ask_for_tenant(const Options& options, protocol::SuspendRequest request,
                   std::string (*line)(const std::string& tenant, const protocol::SuspendReply& reply));
std::string size_text(uint64_t bytes);  // "12.0 MiB"

}  // namespace smt::tools
