#include "runtime/server/strict_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/protocol/server_key.h"
#include "runtime/server/generations.h"

namespace smt::runtime::server {

namespace {

namespace fs = std::filesystem;

// The lock goes last. A server that waits for it meanwhile sees that it is not there any more (take_lock()).
void forget(const std::string& stem) {
    const int lock = open((stem + ".lock").c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (lock < 0) return;
    if (flock(lock, LOCK_EX | LOCK_NB) == 0) {
        for (int i = 1; i <= kGenerations; ++i)
            for (const char* each : {".log.", ".journal."}) unlink((stem + each + std::to_string(i)).c_str());
        for (const char* each : {".sock", ".start", ".log", ".journal", ".fault", ".core", ".lock"})
            unlink((stem + each).c_str());
    }
    close(lock);
}

}  // namespace

void forget_strict_servers(const std::string& directory) {
    std::vector<std::pair<fs::file_time_type, std::string>>
        found;  // when it began or wrote last, and its stem
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
        const std::string key = entry.path().stem().string();
        if (entry.path().extension() != ".lock" || !protocol::is_strict_key(key) || !protocol::is_key(key))
            continue;
        const std::string stem = directory + "/" + key;
        std::error_code none;
        fs::file_time_type time = fs::last_write_time(stem + ".log", none);
        if (none) time = entry.last_write_time(none);
        found.emplace_back(time, stem);
    }
    std::sort(found.rbegin(), found.rend());
    for (size_t i = kMostStrictServers; i < found.size(); ++i) forget(found[i].second);
}

}  // namespace smt::runtime::server
