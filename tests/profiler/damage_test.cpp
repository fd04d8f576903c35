// Files that SQLite did not write like this.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <random>
#include <vector>

#include "profiler/store/store.h"
#include "tests/profiler/profiles.h"
#include "tests/unit/temporary_folder.h"

namespace smt::profiler {
namespace {

namespace fs = std::filesystem;
using tests::problem_of;
using tests::some_key;
using tests::some_profile;
using tests::TemporaryFolder;
using tests::value_of;

constexpr int kProfilesInFile = 100;

// Some dozen pages, all in the main file; or, with long names, more than SQLite keeps in memory.
void fill(const std::string& path, size_t name_bytes = 100) {
    Store store(path);
    for (int i = 0; i < kProfilesInFile; ++i) {
        const std::string name = "kernel" + std::to_string(i) + std::string(name_bytes, '_');
        REQUIRE(problem_of(store.record(some_profile(name))).empty());
    }
}

// Everything behind the first page, where the tables begin.
void overwrite(const std::string& path) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(4096);
    file << std::string(fs::file_size(path) - 4096, '\xee');
}

// Opens what is at `path`, and expects that it is set aside once and a new file works.
void check_set_aside(const std::string& path) {
    std::vector<std::string> said;
    Store store(path, [&](const std::string& line) { said.push_back(line); });
    CHECK(value_of(store.list()).empty());
    REQUIRE(problem_of(store.record(some_profile())).empty());
    CHECK(value_of(store.find(some_key())) == some_profile());
    REQUIRE(said.size() == 1);
    CHECK(said[0].find(path + ".damaged-1") != std::string::npos);
}

TEST_CASE("a truncated file is set aside", "[profiles]") {
    TemporaryFolder folder;
    const std::string path = folder.file("p");
    fill(path);
    const auto size = fs::file_size(path);
    REQUIRE(size > 10 * 4096);
    const auto left = GENERATE_COPY(size - 4096, size / 2, size / 2 + 100, uintmax_t{4096}, uintmax_t{50});
    fs::resize_file(path, left);
    check_set_aside(path);
    CHECK(fs::file_size(path + ".damaged-1") == left);
}

TEST_CASE("random bytes are set aside", "[profiles]") {
    TemporaryFolder folder;
    const std::string path = folder.file("p");
    std::mt19937 random(3);
    std::string bytes(10000, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    std::ofstream(path, std::ios::binary) << bytes;
    check_set_aside(path);

    // And again, beside the first.
    std::ofstream(path, std::ios::binary) << bytes;
    for (const char* part : {"-wal", "-shm"}) fs::remove(path + part);
    Store store(path);
    CHECK(value_of(store.list()).empty());
    CHECK(fs::exists(path + ".damaged-2"));
}

TEST_CASE("an empty file is a new one", "[profiles]") {
    TemporaryFolder folder;
    std::ofstream(folder.file("p"));
    Store store(folder.file("p"));
    REQUIRE(problem_of(store.record(some_profile())).empty());
    CHECK(value_of(store.list()).size() == 1);
    CHECK_FALSE(fs::exists(folder.file("p.damaged-1")));
}

TEST_CASE("a file that is damaged while it is in use is set aside when that is seen", "[profiles]") {
    TemporaryFolder folder;
    const std::string path = folder.file("p");
    fill(path, 30'000);
    int said = 0;
    Store store(path, [&](const std::string&) { ++said; });
    REQUIRE(value_of(store.list()).size() == kProfilesInFile);
    overwrite(path);
    CHECK(value_of(store.list()).empty());
    CHECK(said == 1);
    REQUIRE(problem_of(store.record(some_profile())).empty());
    CHECK(value_of(store.find(some_key())) == some_profile());
}

TEST_CASE("a process with a file open that another sets aside goes on with the new one", "[profiles]") {
    TemporaryFolder folder;
    const std::string path = folder.file("p");
    fill(path);
    int said = 0;
    const auto count = [&](const std::string&) { ++said; };
    Store first(path, count);
    REQUIRE(problem_of(first.record(some_profile("in the journal"))).empty());
    overwrite(path);
    Store second(path, count);
    REQUIRE(problem_of(second.record(some_profile())).empty());
    CHECK(said == 1);
    CHECK(fs::file_size(path + ".damaged-1-wal") > 0);  // or it would be taken for the new file's
    CHECK_FALSE(value_of(second.find(some_key("in the journal"))));
    CHECK(value_of(first.find(some_key())) == some_profile());
    REQUIRE(problem_of(first.record(some_profile("other"))).empty());
    CHECK(value_of(second.list()).size() == 2);
    CHECK(said == 1);
}

TEST_CASE("whatever bytes are changed, calls answer", "[profiles]") {
    TemporaryFolder folder;
    fill(folder.file("good"));
    std::mt19937 random(11);
    for (int trial = 0; trial < 40; ++trial) {
        const std::string path = folder.file("p" + std::to_string(trial));
        fs::copy_file(folder.file("good"), path);
        const auto size = fs::file_size(path);
        {
            std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
            const unsigned changes = 1 + random() % 200;
            const auto within = trial % 3 == 0 ? 100 : size;  // often in the header
            for (unsigned i = 0; i < changes; ++i) {
                file.seekp(static_cast<std::streamoff>(random() % within));
                file.put(static_cast<char>(random()));
            }
        }
        Store store(path);
        // Listed, set aside, or a problem: each is an answer.
        const auto listed = store.list();
        if (const auto* profiles = std::get_if<std::vector<Profile>>(&listed))
            CHECK(profiles->size() <= kProfilesInFile);
        const auto recorded = store.record(some_profile());
        const auto exported = store.export_json();
        const auto table = store.export_csv();
        CHECK(recorded.has_value() == !problem_of(recorded).empty());
    }
}

}  // namespace
}  // namespace smt::profiler
