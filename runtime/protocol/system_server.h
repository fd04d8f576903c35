// The system's server of a GPU (smtd --system), which several users share, and when a program uses it.
//
//   /run/smt/                 root's or the server's user's; the group enters it, and only the owner writes
//     <key>.sock              the control socket; the group connects
//     the server's other files, which its user alone reads
//
// Which server a program gets, in this order:
//
//   1. SMT_RUNTIME_DIR is set, SMT_SYSTEM=0, or the tenant is strict: one of the user's own
//   2. SMT_SYSTEM=1: the system's, or none
//   3. a server of the user's own that runs
//   4. the system's, if it is there; it is there for a user who may not use it, too
//   5. one of the user's own, which the program starts
//
// A program trusts the socket if root made the folder: it is root's, or lies in a folder that root alone
// writes, such as /run. The server must be a process of root or of the folder's owner.
#pragma once

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/settings/read.h"

namespace smt::protocol {

enum class Wanted { kOwn, kSystem, kEither };

inline Wanted wanted_server(bool is_strict) {
    using settings::Id;
    if (is_strict || settings::c_text_of(Id::kRuntimeDir) || settings::is(Id::kSystem, "0"))
        return Wanted::kOwn;
    return settings::is(Id::kSystem, "1") ? Wanted::kSystem : Wanted::kEither;
}

inline const char* system_folder() {
    const char* chosen = settings::c_text_of(settings::Id::kSystemDir);
    return chosen ? chosen : settings::setting(settings::Id::kSystemDir).initial.text;
}

inline constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;

// Null: the folder may be used, and `owner` is set. Else what is wrong with it; errno is ENOENT if it is not
// there.
inline const char* system_folder_problem(uid_t* owner) {
    const char* folder = system_folder();
    struct stat found{}, parent{};
    if (lstat(folder, &found) != 0) return "it cannot be looked at";
    errno = 0;
    *owner = found.st_uid;
    if (!S_ISDIR(found.st_mode) || (found.st_mode & kOthersWrite)) return "others than its owner write it";
    if (found.st_uid == 0) return nullptr;
    const char* slash = strrchr(folder, '/');
    char above[256];
    const int length =
        snprintf(above, sizeof above, "%.*s/", static_cast<int>(slash ? slash - folder : 0), folder);
    const bool by_root = length > 0 && static_cast<size_t>(length) < sizeof above &&
                         stat(above, &parent) == 0 && parent.st_uid == 0 && !(parent.st_mode & kOthersWrite);
    return by_root ? nullptr : "it is not root's, and others than root could have made it";
}

// Whether the process that listens at the other end is root's or the folder's owner's.
inline bool is_trusted_server(int socket, uid_t owner) {
    ucred server{};
    socklen_t size = sizeof server;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &server, &size) == 0 &&
           (server.uid == 0 || server.uid == owner);
}

}  // namespace smt::protocol
