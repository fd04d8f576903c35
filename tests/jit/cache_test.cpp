// The cache: what is stored is found, whatever others do to the folder.
#include "runtime/jit/cache.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <thread>
#include <vector>

#include "runtime/jit/digest.h"
#include "tests/unit/temporary_folder.h"

using namespace smt::runtime::jit;
using smt::tests::TemporaryFolder;

namespace {

struct Lines {
    std::vector<std::string> all;
    std::mutex mutex;
    Cache::Say say() {
        return [this](const std::string& line) {
            std::lock_guard lock(mutex);
            all.push_back(line);
        };
    }
};

std::string key(int number) { return digest({"test", std::to_string(number)}); }

void damage(const std::string& path, int64_t at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    char byte = static_cast<char>(file.get());
    file.seekp(at);
    file.put(static_cast<char>(byte ^ 1));
}

void set_age(const std::string& path, int seconds) {
    timespec times[2];
    clock_gettime(CLOCK_REALTIME, &times[0]);
    times[0].tv_sec -= seconds;
    times[1] = times[0];
    REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

}  // namespace

TEST_CASE("a digest is SHA-256 of lengths and texts") {
    // printf '\0\0\0\0\0\0\0\0' | sha256sum
    CHECK(digest({""}) == "af5570f5a1810b7af78caf4bc70a660f0df51e42baf91d4de5b2328de0e83dfc");
    CHECK(digest({"ab", "c"}) != digest({"a", "bc"}));
    CHECK(digest({"ab", "c"}) == digest({"ab", "c"}));
}

TEST_CASE("the cache gives back what was stored") {
    TemporaryFolder folder;
    Lines lines;
    Cache cache(folder.file("a/b/smt"), 1 << 20, lines.say());
    CHECK(!cache.load(key(1)));
    const std::string payload("bytes with a \0 in them", 22);
    cache.store(key(1), payload);
    CHECK(cache.load(key(1)) == payload);
    CHECK(!cache.load(key(2)));
    cache.store(key(2), "");
    CHECK(cache.load(key(2)) == "");
    struct stat facts;
    REQUIRE(stat(cache.folder().c_str(), &facts) == 0);
    CHECK((facts.st_mode & 0777) == 0700);
    CHECK(Cache(cache.folder(), 1 << 20, lines.say()).load(key(1)) == payload);
    CHECK(cache.clear() > payload.size());
    CHECK(!cache.load(key(1)));
    CHECK(lines.all.empty());
}

TEST_CASE("what others could have written is not read, and is said once") {
    TemporaryFolder folder;
    Lines lines;
    Cache writer(folder.path(), 1 << 20, lines.say());
    writer.store(key(1), "mine");
    writer.store(key(2), "mine too");
    REQUIRE(chmod(folder.file(key(2)).c_str(), 0666) == 0);
    Cache cache(folder.path(), 1 << 20, lines.say());
    CHECK(cache.load(key(1)) == "mine");
    CHECK(!cache.load(key(2)));
    REQUIRE(chmod(folder.path().c_str(), 0777) == 0);
    CHECK(!cache.load(key(1)));
    CHECK(!cache.load(key(1)));
    CHECK(lines.all.size() == 1);
    REQUIRE(chmod(folder.path().c_str(), 0700) == 0);
    CHECK(cache.load(key(1)) == "mine");
}

TEST_CASE("a damaged file of the cache is removed, with one line") {
    TemporaryFolder folder;
    Lines lines;
    Cache cache(folder.file("smt"), 1 << 20, lines.say());
    const std::string path = cache.folder() + "/" + key(1);
    cache.store(key(1), "payload");
    const auto bytes = static_cast<int64_t>(std::filesystem::file_size(path));
    int expected = 0;
    for (int64_t at : {int64_t{0}, int64_t{20}, bytes - 1}) {  // magic, checksum, payload
        cache.store(key(1), "payload");
        damage(path, at);
        CHECK(!cache.load(key(1)));
        CHECK(access(path.c_str(), F_OK) != 0);
        CHECK(lines.all.size() == static_cast<size_t>(++expected));
    }
    for (int64_t cut : {int64_t{0}, int64_t{30}, bytes - 1}) {
        cache.store(key(1), "payload");
        std::filesystem::resize_file(path, static_cast<uint64_t>(cut));
        CHECK(!cache.load(key(1)));
    }
    cache.store(key(1), "payload");
    CHECK(cache.load(key(1)) == "payload");
}

TEST_CASE("several writers share a folder") {
    TemporaryFolder folder;
    Lines lines;
    constexpr int kWriters = 4, kKeys = 40;
    const std::string payload(20'000, 'p');
    std::vector<std::thread> writers;
    for (int writer = 0; writer < kWriters; ++writer) {
        writers.emplace_back([&] {
            Cache cache(folder.file("smt"), 1 << 20, lines.say());
            for (int i = 0; i < kKeys; ++i) {
                cache.store(key(i), payload + std::to_string(i));
                std::optional<std::string> found = cache.load(key(i));
                if (found && *found != payload + std::to_string(i)) lines.say()("wrong bytes");
            }
        });
    }
    for (std::thread& writer : writers) writer.join();
    CHECK(lines.all.empty());
    Cache cache(folder.file("smt"), 1 << 20, lines.say());
    CHECK(cache.list().size() == kKeys);
    size_t files = 0;
    for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator(folder.file("smt"))) ++files;
    CHECK(files == kKeys);  // nothing half written is left
}

TEST_CASE("the cache keeps to its size, and keeps what was read last") {
    TemporaryFolder folder;
    Lines lines;
    Cache cache(folder.file("smt"), 10'500, lines.say());
    const std::string payload(2'000, 'p');
    for (int i = 0; i < 4; ++i) {
        cache.store(key(i), payload);
        set_age(cache.folder() + "/" + key(i), 100 - i);
    }
    CHECK(cache.load(key(0)));  // the oldest, but read now
    cache.store(key(4), payload);
    CHECK(cache.list().size() == 5);
    cache.store(key(5), payload);
    CHECK(cache.list().size() == 5);
    CHECK(cache.load(key(0)));
    CHECK(!cache.load(key(1)));
    CHECK(cache.load(key(5)));
    cache.store(key(6), std::string(20'000, 'p'));  // would be alone
    CHECK(!cache.load(key(6)));
    CHECK(cache.list().size() == 5);
}

TEST_CASE("what a dead writer left is removed after a while") {
    TemporaryFolder folder;
    Lines lines;
    Cache cache(folder.file("smt"), 1 << 20, lines.say());
    cache.store(key(1), "payload");
    const std::string old_part = cache.folder() + "/." + key(2) + ".1.0", new_part = old_part + "1";
    std::ofstream(old_part) << "half";
    std::ofstream(new_part) << "half";
    set_age(old_part, 7200);
    cache.store(key(3), "payload");
    CHECK(access(old_part.c_str(), F_OK) != 0);
    CHECK(access(new_part.c_str(), F_OK) == 0);
}

TEST_CASE("a folder that cannot be written to means no cache, and one line") {
    TemporaryFolder folder;
    Lines lines;
    std::ofstream(folder.file("file")) << "no folder";
    Cache blocked(folder.file("file") + "/smt", 1 << 20, lines.say());
    blocked.store(key(1), "payload");
    blocked.store(key(2), "payload");
    CHECK(!blocked.load(key(1)));
    CHECK(lines.all.size() == 1);

    mkdir(folder.file("open").c_str(), 0700);
    chmod(folder.file("open").c_str(), 0777);  // others could put their code there
    Cache open(folder.file("open"), 1 << 20, lines.say());
    open.store(key(1), "payload");
    CHECK(!open.load(key(1)));
    CHECK(lines.all.size() == 2);

    Cache none("", 1 << 20, lines.say()), off(folder.file("off"), 0, lines.say());
    none.store(key(1), "payload");
    off.store(key(1), "payload");
    CHECK(!none.load(key(1)));
    CHECK(access(folder.file("off").c_str(), F_OK) != 0);
    CHECK(lines.all.size() == 2);
}

TEST_CASE("a full disk means no cache, and one line") {
    TemporaryFolder folder;
    // In a child, for its files may not grow beyond a size: write() fails in the middle, as on a full disk.
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        signal(SIGXFSZ, SIG_IGN);
        Lines lines;
        Cache cache(folder.file("smt"), 1 << 20, lines.say());
        cache.store(key(1), "small");
        const rlimit limit{1000, 1000};
        setrlimit(RLIMIT_FSIZE, &limit);
        cache.store(key(2), std::string(2000, 'p'));
        cache.store(key(3), std::string(2000, 'p'));
        bool good = lines.all.size() == 1 && cache.load(key(1)) == "small" && !cache.load(key(2)) &&
                    cache.list().size() == 1;
        _exit(good ? 0 : 1);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    size_t files = 0;
    for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator(folder.file("smt"))) ++files;
    CHECK(files == 1);
}
