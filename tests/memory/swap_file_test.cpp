// A file for contents that host memory has no room for, and disks that fail.
#include "runtime/server/memory/swap_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace smt::runtime::server {

namespace {

constexpr uint64_t kPart = 64 << 10;

// On the disk that has the build, as a folder for temporary files may be in memory.
struct Folder {
    std::string path = std::filesystem::current_path() / "swap-XXXXXX";
    Folder() { REQUIRE(mkdtemp(path.data())); }
    ~Folder() { std::filesystem::remove_all(path); }
    bool empty() const { return std::filesystem::is_empty(path); }
};

// Whole pages, as the disk may want them.
struct Pages {
    char* const at =
        static_cast<char*>(mmap(nullptr, kPart, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    explicit Pages(char value = 0) { std::memset(at, value, kPart); }
    ~Pages() { munmap(at, kPart); }
    bool all(char value) const {
        for (uint64_t i = 0; i < kPart; ++i)
            if (at[i] != value) return false;
        return true;
    }
};

int error_now = 0;  // of the disk that fails
uint64_t calls_until = 0;

ssize_t failing_write(int file, const void* from, size_t bytes, off_t at) {
    if (calls_until-- == 0) return errno = error_now, -1;
    return pwrite(file, from, std::min<size_t>(bytes, 4096), at);  // some disks write less than was asked
}
// Of a file system that takes O_DIRECT, and then cannot do it.
int refused_direct = 0;
bool refuses(int file) {
    if ((fcntl(file, F_GETFL) & O_DIRECT) == 0) return false;
    ++refused_direct;
    errno = EINVAL;
    return true;
}
ssize_t cached_write(int file, const void* from, size_t bytes, off_t at) {
    return refuses(file) ? -1 : pwrite(file, from, bytes, at);
}
ssize_t cached_read(int file, void* to, size_t bytes, off_t at) {
    return refuses(file) ? -1 : pread(file, to, bytes, at);
}
ssize_t failing_read(int file, void* to, size_t bytes, off_t at) {
    if (calls_until-- == 0) return errno = error_now, error_now ? -1 : 0;
    return pread(file, to, std::min<size_t>(bytes, 4096), at);
}

}  // namespace

TEST_CASE("swap file: parts come back as they were, and are used again", "[swap_file]") {
    const Folder folder;
    std::string problem;
    const auto file = SwapFile::open(folder.path, kPart, &problem);
    REQUIRE(file);
    CHECK(folder.empty());  // it has no name
    const Pages one(1), two(2), read;
    SwapFile::Part first = file->write(one.at, kPart, &problem);
    const SwapFile::Part second = file->write(two.at, kPart / 2, &problem);
    CHECK(problem.empty());
    CHECK(file->parts() == 2);
    CHECK(file->read(first, read.at, kPart).empty());
    CHECK(read.all(1));
    first = {};
    CHECK(file->parts() == 1);
    first = file->write(two.at, kPart, &problem);
    CHECK(file->read(first, read.at, kPart).empty());
    CHECK(read.all(2));
    CHECK(file->read(second, read.at, kPart / 2).empty());
    CHECK(folder.empty());
}

TEST_CASE("swap file: folders that cannot have one are named", "[swap_file]") {
    const auto refused = [](const std::string& folder) {
        std::string problem;
        CHECK_FALSE(SwapFile::open(folder, kPart, &problem));
        CHECK(problem.starts_with("swap_folder in SMT_LIMITS is " + folder + ": "));
        return problem;
    };
    CHECK(refused("there").ends_with("it takes an absolute path"));
    CHECK(refused("/proc/none").find("name a folder that the server may write to") != std::string::npos);
    struct stat facts{};
    if (stat("/dev/shm", &facts) == 0 && access("/dev/shm", W_OK) == 0)
        CHECK(refused("/dev/shm").find("a tmpfs") != std::string::npos);
}

TEST_CASE("swap file: a disk that fails has written nothing", "[swap_file]") {
    const auto [error, words] =
        GENERATE(std::pair(ENOSPC, "No space left on device; make room there"),
                 std::pair(EFBIG, "File too large; make room there"),
                 std::pair(EIO, "Input/output error; see the system's log for that disk"));
    const Folder folder;
    std::string problem;
    const auto file = SwapFile::open(folder.path, kPart, &problem, {failing_write, failing_read});
    REQUIRE(file);
    const Pages one(1), read;
    error_now = error;
    calls_until = 3;
    CHECK_FALSE(file->write(one.at, kPart, &problem));
    CHECK(problem.find(folder.path) != std::string::npos);
    CHECK(problem.find(words) != std::string::npos);
    CHECK(file->parts() == 0);
    calls_until = ~uint64_t{0};
    const SwapFile::Part part = file->write(one.at, kPart, &problem);
    REQUIRE(part);
    for (const int of_read : {EIO, 0}) {  // 0: the file ends too early
        error_now = of_read;
        calls_until = 5;
        CHECK(file->read(part, read.at, kPart).find("cannot be read: Input/output error") !=
              std::string::npos);
    }
    calls_until = ~uint64_t{0};
    CHECK(file->read(part, read.at, kPart).empty());
    CHECK(read.all(1));
}

TEST_CASE("swap file: a file system that refuses direct calls gets others", "[swap_file]") {
    const Folder folder;
    std::string problem;
    const Pages one(1), read;
    for (const bool first_is_read : {false, true}) {
        refused_direct = 0;
        const auto file = SwapFile::open(folder.path, kPart, &problem,
                                         {first_is_read ? ::pwrite : cached_write, cached_read});
        REQUIRE(file);
        const SwapFile::Part part = file->write(one.at, kPart, &problem);
        REQUIRE(part);
        CHECK(file->read(part, read.at, kPart).empty());
        CHECK(read.all(1));
        CHECK(refused_direct <= 1);  // none where O_DIRECT could not be set
    }
    error_now = EINVAL;  // of another kind: it is an error
    const auto file = SwapFile::open(folder.path, kPart, &problem, {failing_write, failing_read});
    REQUIRE(file);
    calls_until = 0;
    const SwapFile::Part again = file->write(one.at, kPart, &problem);
    calls_until = 0;
    CHECK_FALSE(file->write(one.at, kPart, &problem));
}

TEST_CASE("swap file: a part outlives the other users of its file", "[swap_file]") {
    const Folder folder;
    std::string problem;
    const Pages one(1);
    SwapFile::Part part;
    {
        const auto file = SwapFile::open(folder.path, kPart, &problem);
        REQUIRE(file);
        part = file->write(one.at, kPart, &problem);
    }
    CHECK(part);
}

}  // namespace smt::runtime::server
