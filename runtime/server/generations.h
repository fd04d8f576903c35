// The logs and journals of the servers before this one: <key>.log.1 and <key>.journal.1 are the last one's, 2 the one's before, and
// so on to kGenerations. One that did not leave in order (it crashed, was killed, or lost its context) stays when others go.
#pragma once

#include <string>

#include "runtime/server/files.h"

namespace smt::runtime::server {

inline constexpr int kGenerations = 4;

// For the holder of the lock, before it writes a log or a journal. Returns a line about the last server, if that crashed; else nothing.
std::string keep_generation(const Files& files);

}  // namespace smt::runtime::server
