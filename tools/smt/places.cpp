// See places.h.
#include "tools/smt/places.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "install_layout.gen.h"
#include "runtime/journal/journal.h"
#include "runtime/protocol/runtime_folder.h"
#include "runtime/protocol/server_key.h"
#include "runtime/protocol/system_server.h"
#include "runtime/settings/read.h"
#include "tools/smt/command.h"
#include "tools/smt/control.h"

namespace smt::tools {
namespace fs = std::filesystem;
namespace {

// Paths in the installed tree, and then those in the build's.
std::string first_existing(std::initializer_list<std::string> paths) {
    for (const std::string& path : paths)
        if (::access(path.c_str(), R_OK) == 0) return fs::weakly_canonical(path).string();
    return "";
}

constexpr const char* kSystemMark = "system:";

std::vector<std::string> keys_in(const std::string& directory, const std::string& suffix) {
    std::vector<std::pair<fs::file_time_type, std::string>> found;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
        std::string name = entry.path().filename().string();
        std::error_code ignored;
        if (name.size() > suffix.size() && name.ends_with(suffix))
            found.emplace_back(entry.last_write_time(ignored), name.substr(0, name.size() - suffix.size()));
    }
    std::sort(found.rbegin(), found.rend());
    std::vector<std::string> keys;
    for (auto& [time, key] : found) keys.push_back(std::move(key));
    return keys;
}

// The journal of the last server of that key that did not leave in order; empty: all did.
std::string crash_of(const std::string& server) {
    const std::string newest = path_of(server, ".journal");
    for (int i = ask_server(server, protocol::ControlKind::kStatus) ? 1 : 0; i <= kMostGenerations; ++i) {
        const std::string path = i == 0 ? newest : newest + "." + std::to_string(i);
        const runtime::journal::Reader journal(path);
        if (journal.error().empty() && journal.ending() != runtime::journal::Ending::kLeft) return path;
    }
    return "";
}

}  // namespace

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

std::string own_directory() { return fs::read_symlink("/proc/self/exe").parent_path().string(); }

std::string find_interposer() {
    const std::string here = own_directory();
    return first_existing(
        {here + "/" + install_layout::kLibrariesFromBin + "/libsmt.so", here + "/../lib/libsmt.so"});
}

std::string find_runtime() {
    const std::string here = own_directory(), file = std::string("/cudart/") + kRuntimeFile;
    return first_existing({here + "/" + install_layout::kLibrariesFromBin + file, here + "/../lib" + file});
}

std::string find_server() {
    const std::string chosen(settings::text_of(settings::Id::kServer));
    return chosen.empty() ? find_program("smtd") : first_existing({chosen});
}

std::string find_program(const std::string& name) {
    const std::string here = own_directory();
    return first_existing({here + "/" + name, here + "/" + install_layout::kProgramsFromBin + "/" + name});
}

std::string runtime_directory() {
    char path[PATH_MAX];
    if (const char* problem = protocol::name_runtime_folder(path, sizeof path)) throw Failure(problem);
    return path;
}

std::string runtime_directory_problem(const std::string& directory) {
    struct stat status{};
    if (::lstat(directory.c_str(), &status) != 0)
        return errno == ENOENT ? "" : std::string(std::strerror(errno));
    if (!S_ISDIR(status.st_mode)) return "it is not a folder";
    if (status.st_uid != ::geteuid()) return "it belongs to another user";
    if ((status.st_mode & 077) != 0) return "others may enter it; run chmod 700 " + directory;
    return "";
}

std::vector<std::string> keys_with(const std::string& suffix) {
    const protocol::Wanted wanted = protocol::wanted_server(false);
    std::vector<std::string> keys;
    if (wanted != protocol::Wanted::kSystem) {
        const std::string directory = runtime_directory();
        if (const std::string problem = runtime_directory_problem(directory); !problem.empty())
            throw Failure("cannot use " + directory + ": " + problem);
        keys = keys_in(directory, suffix);
    }
    if (wanted == protocol::Wanted::kOwn) return keys;
    for (const std::string& each : keys_in(protocol::system_folder(), suffix)) {
        const std::string key = kSystemMark + each;
        if (::access(path_of(key, suffix).c_str(), R_OK) == 0) keys.push_back(key);
    }
    return keys;
}

std::string why_no_system_journal() {
    if (protocol::wanted_server(false) == protocol::Wanted::kOwn) return "";
    for (const std::string& each : keys_in(protocol::system_folder(), ".journal"))
        if (::access(path_of(kSystemMark + each, ".journal").c_str(), R_OK) != 0)
            return fmt::format("the journal of the system's server {} is for its administrator to read",
                               each);
    return "";
}

std::string find_journal(const std::string* key) {
    const std::vector<std::string> keys = keys_with(".journal");
    if (const std::string why = why_no_system_journal(); keys.empty() && !why.empty()) throw Failure(why);
    if (keys.empty())
        throw Failure("there is no journal in " + runtime_directory() +
                      ": no server ran there, or it could not write one (its .log file there says so). Run a "
                      "program with smt run first");
    if (!key) return path_of(keys.front(), ".journal");
    if (std::find(keys.begin(), keys.end(), *key) != keys.end()) return path_of(*key, ".journal");
    std::string known;
    for (const std::string& each : keys) known += (known.empty() ? "" : ", ") + each;
    throw Failure("there is no journal of a server " + *key + " in " + runtime_directory() +
                  ", but of: " + known);
}

std::vector<std::string> find_journals(const std::string* key) {
    const std::string newest = find_journal(key);
    if (key) return {newest};
    const std::string server = key_of_journal(newest);
    std::vector<std::string> paths;
    for (const std::string& each : keys_with(".journal")) {
        if (protocol::gpu_of_key(each) != protocol::gpu_of_key(server)) continue;
        paths.insert(protocol::is_strict_key(each) ? paths.begin() : paths.end(), path_of(each, ".journal"));
    }
    const auto is_shared = [](const std::string& path) {
        return !protocol::is_strict_key(key_of_journal(path));
    };
    std::stable_partition(paths.begin(), paths.end(), is_shared);
    return paths;
}

std::string find_generation(const std::string* key, int generation) {
    const std::string newest = find_journal(key);
    if (generation == 0) return newest;
    const std::string path = newest + "." + std::to_string(generation);
    if (::access(path.c_str(), R_OK) != 0)
        throw Failure("there is no journal " + path + ": of the servers before, at most four are kept");
    return path;
}

std::string find_last_crash(const std::string* key) {
    const std::string newest = find_journal(key);
    std::string last;
    fs::file_time_type last_time{};
    for (const std::string& server : key ? std::vector{*key} : keys_with(".journal")) {
        const std::string path = crash_of(server);
        std::error_code ignored;
        const fs::file_time_type time = path.empty() ? last_time : fs::last_write_time(path, ignored);
        if (!path.empty() && (last.empty() || time > last_time)) last = path, last_time = time;
    }
    if (!last.empty()) return last;
    throw Failure("no server of " + newest +
                  " that is still known crashed or lost its context: all left in order");
}

// Of an earlier server's, KEY.journal.2, too.
std::string key_of_journal(const std::string& path) {
    const std::string name = fs::path(path).filename().string();
    const std::string key = name.substr(0, name.rfind(".journal"));
    return fs::path(path).parent_path() == protocol::system_folder() ? kSystemMark + key : key;
}

bool is_of_system(const std::string& key) { return key.starts_with(kSystemMark); }

std::string bare_key(const std::string& key) {
    return is_of_system(key) ? key.substr(std::strlen(kSystemMark)) : key;
}

// A server holds its lock (runtime/server/files.h) until it has written its last entry. One that starts tries
// again while it is held here.
bool is_complete(const std::string& journal) {
    constexpr std::string_view kSuffix = ".journal";
    if (!journal.ends_with(kSuffix)) return true;
    const std::string lock = journal.substr(0, journal.size() - kSuffix.size()) + ".lock";
    const int file = ::open(lock.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) return errno == ENOENT;
    const bool free = ::flock(file, LOCK_SH | LOCK_NB) == 0;
    ::close(file);
    return free;
}

std::string path_of(const std::string& key, const std::string& suffix) {
    if (is_of_system(key)) return protocol::system_folder() + ("/" + bare_key(key)) + suffix;
    return runtime_directory() + "/" + key + suffix;
}

}  // namespace smt::tools
