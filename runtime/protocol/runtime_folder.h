// Where a server and its programs meet: the folder of sockets, locks, logs and journals.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "runtime/protocol/environment.h"

namespace smt::protocol {

// SMT_RUNTIME_DIR, $XDG_RUNTIME_DIR/smt or /tmp/smt-<uid>, whether or not it exists. False: the name is too long.
inline bool name_runtime_folder(char* path, size_t bytes) {
    const char* chosen = std::getenv(environment::kRuntimeDir);
    const char* xdg = std::getenv(environment::kXdgRuntimeDir);
    int length;
    if (chosen && *chosen) {
        length = std::snprintf(path, bytes, "%s", chosen);
    } else if (xdg && *xdg) {
        length = std::snprintf(path, bytes, "%s/smt", xdg);
    } else {
        length = std::snprintf(path, bytes, "/tmp/smt-%u", static_cast<unsigned>(geteuid()));
    }
    return length >= 0 && static_cast<size_t>(length) < bytes;
}

}  // namespace smt::protocol
