#include "runtime/jit/cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "runtime/jit/digest.h"

namespace smt::runtime::jit {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kMagic = "smt-cache-1\n";
constexpr size_t kHexBytes = 64;
constexpr char kPartPrefix = '.';           // of a file that is being written
constexpr int64_t kPartLifeSeconds = 3600;  // its writer is long dead
constexpr uint64_t kMostFileBytes = 1ull << 30;

bool is_key(std::string_view name) {
    return name.size() == kHexBytes && name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

int64_t time_of(const struct stat& file) {
    return file.st_mtim.tv_sec * 1'000'000'000ll + file.st_mtim.tv_nsec;
}

// No other user can have written it.
bool is_own(const struct stat& facts) { return facts.st_uid == geteuid() && (facts.st_mode & 022) == 0; }

// The whole file; false with errno.
bool read_all(const std::string& path, std::string& bytes) {
    int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) return false;
    struct stat facts;
    bool good = fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && is_own(facts) &&
                static_cast<uint64_t>(facts.st_size) <= kMostFileBytes;
    if (good) bytes.resize(static_cast<size_t>(facts.st_size));
    for (size_t at = 0; good && at < bytes.size();) {
        ssize_t got = read(file, bytes.data() + at, bytes.size() - at);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0)
            bytes.resize(at);
        else
            at += static_cast<size_t>(got);
    }
    if (good) futimens(file, nullptr);  // read just now
    close(file);
    return good;
}

bool write_all(int file, std::string_view bytes) {
    while (!bytes.empty()) {
        ssize_t sent = write(file, bytes.data(), bytes.size());
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
}

}  // namespace

Cache::Cache(std::string folder, uint64_t limit_bytes, Say say)
    : folder_(std::move(folder)), limit_(limit_bytes), say_(std::move(say)) {
    if (folder_.empty() || limit_ == 0) off_.store(true);
}

std::optional<std::string> Cache::load(const std::string& key) {
    std::string bytes;
    if (folder_.empty() || limit_ == 0 || !trusted() || !read_all(path_of(key), bytes)) return std::nullopt;
    const size_t head = kMagic.size() + kHexBytes;
    std::string_view all = bytes;
    if (all.size() >= head && all.substr(0, kMagic.size()) == kMagic &&
        all.substr(kMagic.size(), kHexBytes) == digest({all.substr(head)})) {
        return bytes.substr(head);
    }
    unlink(path_of(key).c_str());
    say_(fmt::format("the cache's file {} is damaged; it is removed and made anew", path_of(key)));
    return std::nullopt;
}

void Cache::store(const std::string& key, std::string_view payload) {
    if (off_.load() || payload.size() + kMagic.size() + kHexBytes > limit_) return;
    if (!open_folder()) return;
    std::string part = fmt::format("{}/{}{}.XXXXXX", folder_, kPartPrefix, key);
    if (!write_file(part, payload) || rename(part.c_str(), path_of(key).c_str()) != 0) {
        const int error = errno;
        unlink(part.c_str());
        return give_up(std::strerror(error));
    }
    evict();
}

// `path` ends with six X, which become a name of its own.
bool Cache::write_file(std::string& path, std::string_view payload) {
    int file = mkostemp(path.data(), O_CLOEXEC);
    if (file < 0) return false;
    bool good = write_all(file, kMagic) && write_all(file, digest({payload})) && write_all(file, payload);
    const int error = errno;
    if (close(file) != 0) return false;
    errno = error;
    return good;
}

bool Cache::open_folder() {
    std::error_code error;
    fs::path parent = fs::path(folder_).parent_path();
    if (!parent.empty()) fs::create_directories(parent, error);
    if (error) return give_up(error.message()), false;
    if (mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) return give_up(std::strerror(errno)), false;
    return trusted();
}

// A file of another user is machine code that would run in every program of this one.
bool Cache::trusted() {
    struct stat facts;
    if (lstat(folder_.c_str(), &facts) != 0) return false;  // there is none
    if (S_ISDIR(facts.st_mode) && is_own(facts)) return true;
    if (!foreign_.exchange(true))
        say_(
            fmt::format("compiled kernels are neither looked up nor kept: {}: it must be a folder of this "
                        "user's that others cannot write to",
                        folder_));
    return false;
}

void Cache::give_up(const std::string& what) {
    if (off_.exchange(true)) return;
    say_(fmt::format("compiled kernels are not kept: {}: {}", folder_, what));
}

std::vector<Cache::File> Cache::list() const {
    std::vector<File> files;
    std::error_code error;
    if (folder_.empty()) return files;
    for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
        const std::string name = at->path().filename().string();
        struct stat facts;
        if (lstat(at->path().c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) continue;
        if (is_key(name)) {
            files.push_back({name, static_cast<uint64_t>(facts.st_size), time_of(facts)});
        } else if (name[0] == kPartPrefix && time(nullptr) - facts.st_mtim.tv_sec > kPartLifeSeconds) {
            unlink(at->path().c_str());
        }
    }
    std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.read_ns > b.read_ns; });
    return files;
}

void Cache::evict() {
    uint64_t kept = 0;
    for (const File& file : list()) {
        kept += file.bytes;
        if (kept > limit_) unlink(path_of(file.key).c_str());  // another server may have done so already
    }
}

uint64_t Cache::clear() {
    uint64_t removed = 0;
    for (const File& file : list()) {
        if (unlink(path_of(file.key).c_str()) == 0) removed += file.bytes;
    }
    return removed;
}

}  // namespace smt::runtime::jit
