#include "runtime/server/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>

#include "runtime/protocol/runtime_folder.h"
#include "runtime/protocol/server_key.h"
#include "runtime/protocol/system_server.h"

namespace smt::runtime::server {

namespace {

constexpr int kLockTries = 1000;  // 15 s: longer than a server takes to leave
constexpr useconds_t kLockPause = 15'000;

// strict_files.h deletes locks.
bool lies_at(int file, const std::string& path) {
    struct stat open_file, found;
    return fstat(file, &open_file) == 0 && lstat(path.c_str(), &found) == 0 &&
           open_file.st_ino == found.st_ino;
}

bool answers(const std::string& path) {
    int client = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    bool connected =
        client >= 0 && connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    if (client >= 0) close(client);
    return connected;
}

bool name_files(const std::string& directory, const std::string& key, Files& files, std::string& error) {
    const std::string stem = directory + "/" + key;
    files = {directory,         stem + ".sock",  stem + ".lock",   stem + ".log",
             stem + ".journal", stem + ".fault", stem + ".record", stem + ".core"};
    if (files.socket.size() >= sizeof(sockaddr_un::sun_path)) {
        return error = fmt::format("the path {} is too long for a socket", files.socket), false;
    }
    return true;
}

}  // namespace

bool find_system_files(const std::string& key, Files& files, std::string& error) {
    if (!protocol::is_key(key) || protocol::is_strict_key(key))
        return error = "the key of a system's server is 1 to 64 letters, digits, '-' and '_'", false;
    const std::string directory = protocol::system_folder();
    struct stat found;
    if (lstat(directory.c_str(), &found) != 0)
        return error = fmt::format("cannot look at {}: {}; systemd makes it for smtd@.service", directory,
                                   std::strerror(errno)),
               false;
    if (!S_ISDIR(found.st_mode) || found.st_uid != geteuid() || (found.st_mode & 027) != 0)
        return error = fmt::format(
                   "{} must be a directory of the server's user with mode 0750, of the group "
                   "that may use the server",
                   directory),
               false;
    return name_files(directory, key, files, error) && (files.group = found.st_gid, true);
}

bool find_files(const std::string& key, Files& files, std::string& error) {
    if (!protocol::is_key(key))
        return error =
                   "a key is 1 to 64 letters, digits, '-' and '_', and may have '@' and a strict tenant's "
                   "name",
               false;
    char directory_name[PATH_MAX];
    if (const char* problem = protocol::name_runtime_folder(directory_name, sizeof directory_name))
        return error = problem, false;
    const std::string directory = directory_name;
    if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
        return error = fmt::format("cannot make {}: {}", directory, std::strerror(errno)), false;
    }
    struct stat found;
    if (lstat(directory.c_str(), &found) != 0) {
        return error = fmt::format("cannot look at {}: {}", directory, std::strerror(errno)), false;
    }
    if (!S_ISDIR(found.st_mode) || found.st_uid != getuid() || (found.st_mode & 077) != 0) {
        return error = fmt::format("{} must be a directory of ours with mode 0700", directory), false;
    }
    return name_files(directory, key, files, error);
}

Lock take_lock(const Files& files, std::string& error, int* held) {
    for (int i = 0; i < kLockTries; ++i) {
        const int file = open(files.lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (file < 0) {
            error = fmt::format("cannot open {}: {}", files.lock, std::strerror(errno));
            return Lock::kFailed;
        }
        if (flock(file, LOCK_EX | LOCK_NB) == 0 && lies_at(file, files.lock))
            return *held = file, Lock::kTaken;
        close(file);
        if (answers(files.socket)) break;
        usleep(kLockPause);
    }
    return Lock::kOtherServer;
}

}  // namespace smt::runtime::server
