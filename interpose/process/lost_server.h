// The report of a lost server: one line on stderr, once in a session. Calls go on returning CUDA's error.
#pragma once

#include "interpose/process/session.h"

namespace smt::interpose {

// Remembers where the session's server keeps its log, and which of the log's lines are that server's (`pid`).
// The log of a system's server is its administrator's.
void remember_server(const Session& session, const char* key, int pid, bool is_system);

// `farewell`: the server's last message. nullptr: there is none, and its last line in the log is shown
// instead.
void say_lost(const Session& session, const char* farewell);

}  // namespace smt::interpose
