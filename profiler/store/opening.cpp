#include "profiler/store/opening.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace smt::profiler {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void fail(const std::string& what) {
    throw std::system_error(errno, std::generic_category(), what);
}

// A file of its own: to open and close the database's own file would end SQLite's locks in this process.
class FileLock {
public:
    explicit FileLock(const std::string& path)
        : file_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
        if (file_ < 0) fail("cannot open " + path);
        while (flock(file_, LOCK_EX) != 0) {
            if (errno == EINTR) continue;
            const int error = errno;
            close(file_);
            errno = error;
            fail("cannot lock " + path);
        }
    }
    ~FileLock() { close(file_); }
    FileLock(const FileLock&) = delete;
    FileLock& operator=(const FileLock&) = delete;

private:
    int file_;
};

void check(Database& database) {
    Statement check = database.prepare("PRAGMA integrity_check(1)");
    if (check.step() && check.text(0) != "ok") throw DatabaseError(check.text(0), true);
}

// A file that is refused is not looked at further, nor changed.
std::unique_ptr<Database> open_whole(const std::string& path, const Schema& schema) {
    auto database = std::make_unique<Database>(path);
    // What a crash of a process leaves is made good by the journal; a crash of the machine may cost the last
    // records, not the file.
    database->run("PRAGMA cell_size_check = ON; PRAGMA foreign_keys = ON; PRAGMA synchronous = NORMAL");
    bring_up_to_date(*database, schema);
    check(*database);
    database->run("PRAGMA journal_mode = WAL");
    return database;
}

// The main file goes last: until then the next to open it finds it damaged, and goes on here. The other way
// round, a journal might be left beside a new file, and be taken for its own.
std::string set_aside(const std::string& path) {
    std::string to;
    for (int number = 1; to.empty() || fs::exists(to); ++number)
        to = fmt::format("{}.damaged-{}", path, number);
    for (const char* part : {"-wal", "-shm", "-journal", ""}) {
        if (rename((path + part).c_str(), (to + part).c_str()) != 0 && errno != ENOENT)
            fail(fmt::format("cannot rename {} to {}", path + part, to + part));
    }
    return to;
}

}  // namespace

std::unique_ptr<Database> open_database(const std::string& path, const Schema& schema,
                                        const std::function<void(const std::string& line)>& say) {
    if (const fs::path folder = fs::path(path).parent_path(); !folder.empty()) fs::create_directories(folder);
    FileLock lock(path + ".lock");
    std::string damage;
    try {
        return open_whole(path, schema);
    } catch (const DatabaseError& error) {
        if (!error.damaged()) throw;
        damage = error.what();
    }
    const std::string aside = set_aside(path);
    if (say)
        say(fmt::format("the profiles in {} are damaged ({}): that file is now {}, and a new one is begun",
                        path, damage, aside));
    return open_whole(path, schema);
}

}  // namespace smt::profiler
