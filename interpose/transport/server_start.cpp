#include "interpose/transport/server_start.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "install_layout.gen.h"
#include "interpose/transport/connection.h"
#include "interpose/transport/waiting.h"
#include "runtime/protocol/runtime_folder.h"
#include "runtime/protocol/server_key.h"
#include "runtime/protocol/server_process.h"
#include "runtime/protocol/system_server.h"
#include "runtime/settings/read.h"

namespace smt::interpose {

namespace {

constexpr useconds_t kRetryMicroseconds = 2'000;
constexpr int kNoServer = -1;

bool runtime_directory(char (&path)[kPathBytes], SessionFailure& failure) {
    if (const char* problem = protocol::name_runtime_folder(path, sizeof path))
        return explain(failure, "%s", problem), false;
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        return explain(failure, "cannot create %s: %m", path), false;
    }
    struct stat found;
    if (lstat(path, &found) != 0 || !S_ISDIR(found.st_mode) || found.st_uid != geteuid() ||
        (found.st_mode & 077) != 0) {
        return explain(failure, "%s is not a folder of this user's with mode 0700; %s names another one",
                       path, settings::variable_of(settings::Id::kRuntimeDir)),
               false;
    }
    return true;
}

// The socket, or kNoServer with errno.
int try_connect(const char* path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (strlen(path) >= sizeof address.sun_path) return errno = ENAMETOOLONG, kNoServer;
    strcpy(address.sun_path, path);
    int socket_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (socket_fd < 0) return kNoServer;
    int rc;
    do rc = connect(socket_fd, reinterpret_cast<sockaddr*>(&address), sizeof address);
    while (rc != 0 && errno == EINTR);
    if (rc == 0) return socket_fd;
    int error = errno;
    close(socket_fd);
    return errno = error, kNoServer;
}

bool server_program(char (&path)[kPathBytes], SessionFailure& failure) {
    const char* chosen = settings::c_text_of(settings::Id::kServer);
    if (chosen) {
        snprintf(path, sizeof path, "%s", chosen);
    } else {
        Dl_info self;
        char real[PATH_MAX];
        if (!dladdr(reinterpret_cast<void*>(&reach_server), &self) || !self.dli_fname ||
            !realpath(self.dli_fname, real)) {
            return explain(failure, "cannot tell where libsmt.so lies"), false;
        }
        char* slash = strrchr(real, '/');
        int folder = slash ? static_cast<int>(slash - real) : 0;
        for (const char* bin : {install_layout::kBinFromLibraries, "../bin"}) {  // installed, built
            snprintf(path, sizeof path, "%.*s/%s/smtd", folder, real, bin);
            if (access(path, X_OK) == 0) break;
        }
    }
    if (access(path, X_OK) != 0) {
        return explain(failure, "cannot run %s: %m (%s names the server's program)", path,
                       settings::variable_of(settings::Id::kServer)),
               false;
    }
    return true;
}

bool spawn_server(const char* directory, const char* key, const char* visible, SessionFailure& failure) {
    char program[kPathBytes], log[2 * kPathBytes];
    if (!server_program(program, failure)) return false;
    snprintf(log, sizeof log, "%s/%s.log", directory, key);
    int error = 0;
    switch (protocol::start_server_process(program, key, visible, log, &error)) {
        case protocol::ServerStart::kOnItsWay:
            return true;
        case protocol::ServerStart::kCannotRun:
            errno = error;
            return explain(failure, "cannot start %s: %m", program), false;
        case protocol::ServerStart::kRefused:
            break;
    }
    return explain(failure, "%s did not start, see %s", program, log), false;
}

// A server holds its lock for life, from before it opens the device.
bool server_holds_lock(const char* directory, const char* key) {
    char path[2 * kPathBytes];
    snprintf(path, sizeof path, "%s/%s.lock", directory, key);
    const int lock = open(path, O_RDWR | O_CLOEXEC);
    if (lock < 0) return false;
    const bool held = flock(lock, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    close(lock);
    return held;
}

// Holds the start lock while it starts the server, so that of many clients only one does.
int start_server(const char* directory, const char* key, const char* visible, const char* socket_path,
                 uint64_t deadline, SessionFailure& failure) {
    char path[2 * kPathBytes];
    snprintf(path, sizeof path, "%s/%s.start", directory, key);
    int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock < 0) return explain(failure, "cannot open %s: %m", path), kNoServer;
    bool mine = false;
    bool started = false;
    int result = kNoServer;
    const uint64_t last_deadline = deadline + uint64_t{kSlowStartSeconds - kStartSeconds} * 1'000'000'000;
    while (true) {
        if (!mine) mine = flock(lock, LOCK_EX | LOCK_NB) == 0;
        result = try_connect(socket_path);
        if (result != kNoServer) break;
        if (mine && !started) {
            if (!spawn_server(directory, key, visible, failure)) break;
            started = true;
        }
        if (const uint64_t now = now_nanoseconds(); now > deadline) {
            const bool starts = server_holds_lock(directory, key);
            if (!starts || now > last_deadline) {
                explain(failure, "the server did not answer within %u s, see %s/%s.log",
                        starts ? kSlowStartSeconds : kStartSeconds, directory, key);
                break;
            }
            deadline = now + 1'000'000'000;  // until the next look
        }
        usleep(kRetryMicroseconds);
    }
    close(lock);
    return result;
}

// A connected socket; or kNoServer and the reason, which is empty if there is no system's server of that GPU.
int reach_system_server(const char* key, uint64_t deadline, SessionFailure& failure) {
    failure.text[0] = 0;
    const char* folder = protocol::system_folder();
    uid_t owner = 0;
    if (const char* problem = protocol::system_folder_problem(&owner)) {
        if (errno != ENOENT)
            explain(failure, "the system's folder %s is not used: %s; %s=0 is a server of one's own", folder,
                    problem, settings::variable_of(settings::Id::kSystem));
        return kNoServer;
    }
    char path[2 * kPathBytes];
    snprintf(path, sizeof path, "%s/%s.sock", folder, key);
    int socket_fd;
    while ((socket_fd = try_connect(path)) == kNoServer && errno == ECONNREFUSED &&
           now_nanoseconds() < deadline)
        usleep(kRetryMicroseconds);  // it starts again
    if (socket_fd == kNoServer) {
        if (errno == EACCES)
            explain(
                failure,
                "user %u is not in the group that may use the system's server, %s; the administrator can add "
                "it, and %s=0 is a server of one's own",
                static_cast<unsigned>(geteuid()), path, settings::variable_of(settings::Id::kSystem));
        else if (errno != ENOENT)
            explain(failure, "cannot connect to the system's server, %s: %m", path);
        return kNoServer;
    }
    if (protocol::is_trusted_server(socket_fd, owner)) return socket_fd;
    close(socket_fd);
    return explain(failure, "%s is served by a process that is neither root's nor of the folder's owner",
                   path),
           kNoServer;
}

}  // namespace

void explain(SessionFailure& failure, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(failure.text, sizeof failure.text, format, arguments);
    va_end(arguments);
}

int reach_server(const char* key, const char* visible, uint64_t deadline, bool* is_system,
                 SessionFailure& failure) {
    char directory[kPathBytes], path[2 * kPathBytes];
    const protocol::Wanted wanted = protocol::wanted_server(protocol::is_strict_key(key));
    *is_system = wanted == protocol::Wanted::kSystem;
    if (*is_system) {
        const int socket_fd = reach_system_server(key, deadline, failure);
        if (socket_fd == kNoServer && !failure.text[0])
            explain(failure, "%s=1, and there is no system's server of this GPU: no %s/%s.sock",
                    settings::variable_of(settings::Id::kSystem), protocol::system_folder(), key);
        return socket_fd;
    }
    int socket_fd = kNoServer;
    if (!runtime_directory(directory, failure)) {  // a container may have no place for it
        if (wanted == protocol::Wanted::kOwn) return kNoServer;
        const SessionFailure no_folder = failure;
        socket_fd = reach_system_server(key, deadline, failure);
        *is_system = socket_fd != kNoServer;
        if (!*is_system && !failure.text[0]) failure = no_folder;
        return socket_fd;
    }
    snprintf(path, sizeof path, "%s/%s.sock", directory, key);
    socket_fd = try_connect(path);
    if (socket_fd != kNoServer) return socket_fd;
    const int error = errno;
    if (wanted == protocol::Wanted::kEither) {
        socket_fd = reach_system_server(key, deadline, failure);
        *is_system = socket_fd != kNoServer;
        if (*is_system || failure.text[0]) return socket_fd;
    }
    if (error == ENAMETOOLONG) return explain(failure, "%s is too long for a socket's name", path), kNoServer;
    return start_server(directory, key, visible, path, deadline, failure);
}

}  // namespace smt::interpose
