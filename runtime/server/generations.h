// The logs and journals of earlier servers: <key>.log.1 and <key>.journal.1 are of the last one, 2 of the
// one before, and so on to kGenerations. Files of a server that did not leave in order (it crashed, was
// killed, or lost its context) are kept longer than others.
#pragma once

#include <string>

#include "runtime/server/files.h"

namespace smt::runtime::server {

inline constexpr int kGenerations = 4;

// Called by the holder of the lock before it writes a log or a journal. Returns a line about the last
// server if that crashed, else an empty string.
std::string keep_generation(const Files& files);

}  // namespace smt::runtime::server
