// Where a server and its programs meet: the folder of sockets, locks, logs and journals.
//
// SMT_RUNTIME_DIR, or one that depends on the user alone: what else the environment says differs between a user's programs
// (XDG_RUNTIME_DIR is set in a login and not in a job), and two folders would be two servers of one GPU. It is /tmp/smt-<uid>. Anybody
// may make a folder of that name first, which is then passed over for the next place.
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/settings/read.h"

namespace smt::protocol {

inline constexpr const char* kSimulatedKey = "simulated";   // names the files of the simulated device's server
inline constexpr const char* kRuntimePlaces[] = {"/tmp", "/var/tmp", "/dev/shm"};

// The user's folder in the first of `places` where there is one; else where nothing has its name. Empty: each is blocked.
template <size_t n>
bool pick_runtime_folder(const char* const (&places)[n], char* path, size_t bytes) {
    const unsigned user = static_cast<unsigned>(geteuid());
    for (const bool wanted : {true, false}) {   // there, and not there
        for (const char* place : places) {
            struct stat found;
            const int length = snprintf(path, bytes, "%s/smt-%u", place, user);
            if (length < 0 || static_cast<size_t>(length) >= bytes) continue;
            const bool there = lstat(path, &found) == 0;
            if (wanted ? there && S_ISDIR(found.st_mode) && found.st_uid == user : !there && errno == ENOENT && access(place, W_OK) == 0) return true;
        }
    }
    return false;
}

// The folder's name, whether or not it exists; or what is wrong, else null.
inline const char* name_runtime_folder(char* path, size_t bytes) {
    const char* chosen = settings::c_text_of(settings::Id::kRuntimeDir);
    if (!chosen) {
        return pick_runtime_folder(kRuntimePlaces, path, bytes)
                   ? nullptr
                   : "smt-<uid> in /tmp, /var/tmp and /dev/shm is no folder of this user's: set SMT_RUNTIME_DIR to one that is";
    }
    if (*chosen != '/') return "SMT_RUNTIME_DIR must be an absolute path: programs that start elsewhere would have another server";
    const int length = snprintf(path, bytes, "%s", chosen);
    return length >= 0 && static_cast<size_t>(length) < bytes ? nullptr : "the name in SMT_RUNTIME_DIR is too long";
}

}  // namespace smt::protocol
