// The runtime directory: sockets, locks, logs and journals of a server, known to it and its programs.
//
// It is SMT_RUNTIME_DIR, else /tmp/smt-<uid>, which depends on the user only. Other environment variables
// differ between a user's programs (XDG_RUNTIME_DIR is set in a login and not in a job), and two directories
// would mean two servers of one GPU. Another user may create a folder of that name first; then the next place
// is used.
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/settings/read.h"

namespace smt::protocol {

inline constexpr const char* kSimulatedKey = "simulated";  // names the files of the simulated device's server
inline constexpr const char* kRuntimePlaces[] = {"/tmp", "/var/tmp", "/dev/shm"};

// Sets `path` to the user's existing folder in the first of `places` that has one, else to the first free
// name in a writable place. False: all places are blocked.
template <size_t n>
bool pick_runtime_folder(const char* const (&places)[n], char* path, size_t bytes) {
    const unsigned user = static_cast<unsigned>(geteuid());
    for (const bool wanted : {true, false}) {  // first existing folders, then free names
        for (const char* place : places) {
            struct stat found;
            const int length = snprintf(path, bytes, "%s/smt-%u", place, user);
            if (length < 0 || static_cast<size_t>(length) >= bytes) continue;
            const bool there = lstat(path, &found) == 0;
            if (wanted ? there && S_ISDIR(found.st_mode) && found.st_uid == user
                       : !there && errno == ENOENT && access(place, W_OK) == 0)
                return true;
        }
    }
    return false;
}

// Sets `path` to the folder's name, whether or not it exists. Returns null, or the error.
inline const char* name_runtime_folder(char* path, size_t bytes) {
    const char* chosen = settings::c_text_of(settings::Id::kRuntimeDir);
    if (!chosen) {
        return pick_runtime_folder(kRuntimePlaces, path, bytes)
                   ? nullptr
                   : "smt-<uid> in /tmp, /var/tmp and /dev/shm is no folder of this user's: set "
                     "SMT_RUNTIME_DIR to one that is";
    }
    if (*chosen != '/')
        return "SMT_RUNTIME_DIR must be an absolute path: programs that start elsewhere would have another "
               "server";
    const int length = snprintf(path, bytes, "%s", chosen);
    return length >= 0 && static_cast<size_t>(length) < bytes ? nullptr
                                                              : "the name in SMT_RUNTIME_DIR is too long";
}

}  // namespace smt::protocol
