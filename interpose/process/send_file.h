// Sends a message with a file to the server, over the session's control socket.
#pragma once

#include <cstddef>

namespace smt::interpose {

// `flags`: those of sendmsg(2). False: it was not sent. The file stays the caller's. Any thread.
bool send_with_file(const void* packet, size_t bytes, int file, int flags);

}  // namespace smt::interpose
